#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>

#include "pipeline/checkpoint/checkpoint.h"
#include "pipeline/checkpoint/checkpoint_folder.h"
#include "pipeline/checkpoint/checkpoint_seal.h"
#include "runtime/base/disk.h"
#include "runtime/base/random.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/pipeline/state_example.h"

namespace troupe::pipeline {
namespace {

using runtime::Buffer;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// Files in memory. A write that `capacity` bytes do not hold fails and leaves the file all the
// same, cut off, as after a crash of a machine that does not keep its promises.
class MemoryDisk final : public runtime::Disk {
 public:
  runtime::Result<void> replace(const std::string& path,
                                std::span<const std::byte> bytes) override {
    if (bytes.size() <= capacity) {
      files[path] = Buffer::copy_of(bytes);
      return {};
    }
    files[path] = Buffer::copy_of(bytes.first(capacity));
    return failure("no space left for " + path);
  }
  runtime::Result<Buffer> read(const std::string& path) override {
    if (!files.contains(path)) return failure("no file " + path);
    return files[path];
  }
  runtime::Result<void> remove(const std::string& path) override {
    files.erase(path);
    return {};
  }
  runtime::Result<std::vector<std::string>> list(const std::string& folder) override {
    std::vector<std::string> names;
    for (const auto& [path, file] : files) {
      if (path.starts_with(folder + "/")) names.push_back(path.substr(folder.size() + 1));
    }
    return names;
  }
  runtime::Result<void> make_folder(const std::string&) override { return {}; }
  runtime::Result<void> link(const std::string&, const std::string&) override { return {}; }

  std::map<std::string, Buffer> files;
  std::size_t capacity = SIZE_MAX;

 private:
  static runtime::Error failure(const std::string& message) {
    return {runtime::ErrorKind::kData, message};
  }
};

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
  EXPECT_THAT(refusal(file), HasSubstr("written in format version 2, this build reads up to 1"));
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

TEST_F(DamagedCheckpoint, TornFileIsRefusedAndTheNextOlderOneIsWhole) {
  MemoryDisk disk;
  const Buffer file = encode();
  ASSERT_TRUE(disk.replace("run/" + checkpoint_name(4), file.bytes()).ok());
  for (const std::size_t torn :
       {std::size_t{0}, std::size_t{100}, std::size_t{512}, file.size() - 1}) {
    disk.capacity = torn;
    EXPECT_FALSE(disk.replace("run/" + checkpoint_name(8), file.bytes()).ok());
    const auto names = checkpoints_newest_first(disk.list("run").value());
    ASSERT_EQ(names, (std::vector<std::string>{checkpoint_name(8), checkpoint_name(4)}));
    EXPECT_NE(refusal(disk.read("run/" + names[0]).value()), "");
    EXPECT_EQ(refusal(disk.read("run/" + names[1]).value()), "");
  }
}

// The operating system's own refusal, on real files.
TEST_F(DamagedCheckpoint, FileSizeLimitLeavesTheOlderFileAndNoOther) {
  const TemporaryFolder folder;
  runtime::FileDisk disk;
  const std::string path = folder / "step-000000000004.h5";
  const auto write = [&] { return disk.replace(path, encode().bytes()); };
  ASSERT_TRUE(write().ok());

  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 2000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto failed = write();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);

  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr(path));
  EXPECT_EQ(disk.list(folder.path()).value(), std::vector<std::string>{"step-000000000004.h5"});
  EXPECT_EQ(refusal(disk.read(path).value()), "");
}

}  // namespace
}  // namespace troupe::pipeline
