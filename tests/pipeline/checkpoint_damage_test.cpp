#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>

#include "pipeline/checkpoint/checkpoint.h"
#include "pipeline/checkpoint/checkpoint_seal.h"
#include "runtime/base/disk.h"
#include "runtime/base/random.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/pipeline/state_example.h"
#include "tests/support/process_limits.h"

namespace troupe::pipeline {
namespace {

using runtime::Buffer;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class DamagedCheckpoint : public ::testing::Test {
 protected:
  Checkpoint checkpoint() const {
    Checkpoint result;
    result.state = filled_state(example_);
    result.topology = "name: example\n";
    return result;
  }
  Buffer encode() const {
    return encode_checkpoint(checkpoint(), example_.layout, example_.options).value();
  }
  // Why reading refuses the bytes; "" when it does not.
  std::string refusal(const Buffer& file) const {
    const auto read = decode_checkpoint(file, "a.h5", example_.layout, example_.options);
    const auto summary = inspect_checkpoint(file, "a.h5");
    EXPECT_EQ(read.ok(), summary.ok());
    if (read.ok()) return "";
    EXPECT_EQ(read.error().kind, runtime::ErrorKind::kData);
    EXPECT_THAT(read.error().message, HasSubstr("a.h5: "));
    return read.error().message;
  }

  const StateExample example_ = state_example();
};

TEST_F(DamagedCheckpoint, EveryFlippedBitOfASampleIsRefused) {
  const Buffer file = encode();
  const auto flipped = [&](std::size_t position, unsigned bit) {
    Buffer copy = Buffer::copy_of(file.bytes());
    copy.mutable_data()[position] ^= static_cast<std::byte>(1u << bit);
    return copy;
  };
  const auto draw = [](std::uint32_t index) {
    return runtime::random_word({.seed = 5, .stream = 1}, index);
  };
  for (std::uint32_t i = 0; i < kSealBytes; ++i) {
    EXPECT_THAT(refusal(flipped(i, draw(i) % 8)),
                AnyOf(HasSubstr("damaged"), HasSubstr("not a checkpoint")))
        << "byte " << i;
  }
  for (std::uint32_t i = 0; i < 4000; ++i) {
    const std::size_t position = kSealBytes + draw(1000 + 2 * i) % (file.size() - kSealBytes);
    EXPECT_THAT(refusal(flipped(position, draw(1001 + 2 * i) % 8)), HasSubstr("damaged"))
        << "byte " << position;
  }
  EXPECT_EQ(refusal(file), "");
}

TEST_F(DamagedCheckpoint, EveryTruncationIsRefusedWithWhatIsMissing) {
  const Buffer file = encode();
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::string reason = refusal(file.slice(0, size));
    if (size < kSealBytes) {
      ASSERT_THAT(reason, HasSubstr(std::to_string(size) + " bytes are too few"));
    } else {
      ASSERT_THAT(reason, HasSubstr("truncated: " + std::to_string(size) + " bytes of " +
                                    std::to_string(file.size()) + ", " +
                                    std::to_string(file.size() - size) + " are missing"));
    }
  }
}

TEST_F(DamagedCheckpoint, LongerFileIsRefused) {
  const Buffer file = encode();
  Buffer longer = Buffer::zeroed(file.size() + 3);
  std::memcpy(longer.mutable_data(), file.data(), file.size());
  EXPECT_THAT(refusal(longer), HasSubstr("3 bytes longer"));
}

TEST_F(DamagedCheckpoint, OtherFilesAreNoCheckpoints) {
  EXPECT_THAT(refusal(Buffer::zeroed(4096)), HasSubstr("not a checkpoint of Troupe"));
  Buffer hdf5 = Buffer::copy_of(encode().bytes().subspan(kSealBytes));
  EXPECT_THAT(refusal(hdf5), HasSubstr("not a checkpoint of Troupe"));
}

TEST_F(DamagedCheckpoint, NewerVersionIsRefusedNamingBoth) {
  Buffer file = Buffer::copy_of(encode().bytes());
  seal_checkpoint(kCheckpointVersion + 1, file);
  EXPECT_THAT(refusal(file), HasSubstr("written in format version 7, this build reads up to 6"));
}

TEST_F(DamagedCheckpoint, WholeFileWithoutHdf5InsideIsRefused) {
  Buffer file = Buffer::zeroed(4096);
  seal_checkpoint(kCheckpointVersion, file);
  EXPECT_THAT(refusal(file), HasSubstr("HDF5"));
}

TEST_F(DamagedCheckpoint, StateThatDoesNotMatchItsHashIsRefusedAndShown) {
  Buffer file = Buffer::copy_of(encode().bytes());
  const std::string text = hash_of_state(checkpoint().state).text();
  const auto bytes = std::span(file.mutable_data(), file.size());
  const auto found = std::search(bytes.begin(), bytes.end(), text.begin(), text.end(),
                                 [](std::byte a, char b) { return static_cast<char>(a) == b; });
  ASSERT_NE(found, bytes.end());
  *found = static_cast<std::byte>(text[0] == '0' ? '1' : '0');
  seal_checkpoint(kCheckpointVersion, file);
  const auto read = decode_checkpoint(file, "a.h5", example_.layout, example_.options);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("its state has hash " + text));
  const auto summary = inspect_checkpoint(file, "a.h5");
  ASSERT_TRUE(summary.ok());
  EXPECT_NE(summary->state_hash, summary->recomputed_hash);
}

// The operating system's own refusal, on real files.
TEST_F(DamagedCheckpoint, FileSizeLimitLeavesTheOlderFileAndNoOther) {
  const TemporaryFolder folder;
  runtime::FileDisk disk;
  const std::string path = folder / "step-000000000004.h5";
  const auto write = [&] { return disk.replace(path, encode().bytes()); };
  ASSERT_TRUE(write().ok());

  const auto failed = [&] {
    const FileSizeLimit limit(2000);
    return write();
  }();
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr(path));
  EXPECT_EQ(disk.list(folder.path()).value(), std::vector<std::string>{"step-000000000004.h5"});
  EXPECT_EQ(refusal(disk.read(path).value()), "");
}

}  // namespace
}  // namespace troupe::pipeline
