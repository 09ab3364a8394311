#include "telemetry/sinks/tensorboard_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "runtime/base/tf_record.h"
#include "telemetry/sinks/tensorboard_event.h"
#include "tests/support/temporary_folder.h"
#include "tests/telemetry/telemetry_support.h"

namespace troupe::telemetry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The events of a file. tests/telemetry/independent_readers looks into them with protocol buffers
// of others.
std::vector<std::string> events(const std::string& file) {
  std::vector<std::string> found;
  std::size_t at = 0;
  while (at < file.size()) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data() + at, sizeof length);
    if (at + 16 + length > file.size()) {
      ADD_FAILURE() << "ends within a record";
      break;
    }
    found.push_back(file.substr(at + 12, length));
    EXPECT_EQ(file.substr(at, 16 + length), runtime::tf_record(found.back()));
    at += 16 + length;
  }
  return found;
}

TensorboardOptions options(const TemporaryFolder& folder) {
  return {.folder = folder.path(), .time = 1760000000.5, .host = "a/b", .pid = 7};
}

// The host and the process are left to be found out.
TensorboardOptions unnamed(const std::string& folder) {
  TensorboardOptions options;
  options.folder = folder;
  options.time = 5;
  return options;
}

// What protocol buffers for Python (python3-protobuf 3.21) write of the same messages.
TEST(TensorboardEvent, BytesAreThoseOfProtocolBuffers) {
  const auto hex = [](const std::string& bytes) {
    std::string text;
    for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return text;
  };
  const auto event = [&](const ProtobufMessage& value) {
    return hex(summary_event(1.5, 300, std::span(&value, 1)));
  };
  EXPECT_EQ(hex(version_event(1.5)), "09000000000000f83f1a0d627261696e2e4576656e743a32");
  EXPECT_EQ(hex(session_event(1.5, 300)), "09000000000000f83f10ac023a020801");
  EXPECT_EQ(event(scalar_value("a/b", -2.5)),
            "09000000000000f83f10ac022a0c0a0a0a03612f6215000020c0");
  EXPECT_EQ(event(histogram_value("h", {1.0, 4.0, 3.0, 7.0, 21.0, {1.0, 2.0, 4.0}, {1.0, 2.0}})),
            "09000000000000f83f10ac022a580a560a01682a5109000000000000f03f11000000000000104019"
            "0000000000000840210000000000001c402900000000000035403210000000000000004000000000"
            "000010403a10000000000000f03f0000000000000040");
  EXPECT_EQ(event(image_value("i", 3, 200, "png")),
            "09000000000000f83f10ac022a130a110a0169220c08c801100318012203706e67");
  EXPECT_EQ(event(text_value("t", "text")),
            "09000000000000f83f10ac022a210a1f0a0174420e08071204120208014204746578744a0a0a060a"
            "04746578742002");
}

// The checksums are the examples of RFC 3720, B.4, such as e3069283 of "123456789". TensorFlow
// rotates them by 15 bits and adds a282ead8.
TEST(TensorboardEvent, RecordIsLengthChecksumBytesChecksum) {
  const auto checksum = [](const std::string& bytes) {
    const std::string record = runtime::tf_record(bytes);
    EXPECT_EQ(record.size(), 8u + 4 + bytes.size() + 4);
    EXPECT_EQ(record.substr(12, bytes.size()), bytes);
    EXPECT_EQ(record.substr(0, 8), static_cast<char>(bytes.size()) + std::string(7, '\0'));
    std::uint32_t last = 0;
    std::memcpy(&last, record.data() + 12 + bytes.size(), 4);
    return last;
  };
  EXPECT_EQ(checksum("123456789"), 0x2507c60du + 0xa282ead8u);
  EXPECT_EQ(checksum(""), 0xa282ead8u);
  const auto rotated = [](std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; };
  EXPECT_EQ(checksum(std::string(32, '\0')), rotated(0x8a9136aau));
  EXPECT_EQ(checksum(std::string(32, '\xff')), rotated(0x62a8ab43u));
}

TEST(TensorboardFile, EverySessionHasAFileOfItsOwnInTheOrderOfNames) {
  TemporaryFolder folder;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(TensorboardFile::open(options(folder)).ok());
  TensorboardOptions later = options(folder);
  later.time += 10;
  ASSERT_TRUE(TensorboardFile::open(later).ok());
  const std::string first = "events.out.tfevents.1760000000.a_b.7";
  EXPECT_THAT(folder.names(), ElementsAre(first, first + ".01", first + ".02",
                                          "events.out.tfevents.1760000010.a_b.7"));
  for (const auto& name : folder.names())
    EXPECT_THAT(events(read_text(folder / name)), ElementsAre(HasSubstr("brain.Event:2")));
}

TEST(TensorboardFile, HostAndProcessAreFoundOut) {
  TemporaryFolder folder;
  const auto file = TensorboardFile::open(unnamed(folder.path()));
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(file->path(), testing::EndsWith(fmt::format(".{}", ::getpid())));
  EXPECT_THAT(file->path(), HasSubstr("/events.out.tfevents.0000000005."));
}

TEST(TensorboardFile, FolderThatIsNotThereIsAnErrorThatNamesIt) {
  const auto file = TensorboardFile::open(unnamed("/nowhere/at/all"));
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().message, HasSubstr("/nowhere/at/all/events.out.tfevents."));
  EXPECT_THAT(file.error().message, HasSubstr("No such file or directory"));
}

TEST(TensorboardFile, LinesBecomeScalarsTextsAndTheStartOfASession) {
  TemporaryFolder folder;
  auto file = TensorboardFile::open(options(folder));
  ASSERT_TRUE(file.ok());
  file->take(read(R"({"kind":"run","time":1760000001,"step":40,"name":"toy","model":"gan3d_12"})"));
  file->take(read(R"({"kind":"samples","time":1760000002,"step":40,)"
                  R"("values":{"x/a":[1,1,1,1,1],"x/b":[1,2,2,2,2]}})"));
  file->take(read(R"({"kind":"showers","time":1760000003,"step":41,"file":"x"})"));
  ASSERT_TRUE(file->flush().ok());
  const auto found = events(read_text(file->path()));
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[1], session_event(1760000001, 41));
  EXPECT_THAT(found[2], HasSubstr("| model | gan3d_12 |"));
  EXPECT_THAT(found[3], HasSubstr("went on at step 40"));
  EXPECT_EQ(found[4], summary_event(1760000002, 40,
                                    std::vector{scalar_value("x/a", 1), scalar_value("x/b", 2)}));
}

TEST(TensorboardFile, LineWithoutATimeHasThatOfTheOneBefore) {
  TemporaryFolder folder;
  auto file = TensorboardFile::open(options(folder));
  ASSERT_TRUE(file.ok());
  file->add(1, 1760000005, {scalar_value("a", 1)});
  file->add(2, 0, {scalar_value("a", 2)});
  ASSERT_TRUE(file->flush().ok());
  EXPECT_EQ(events(read_text(file->path())).back(),
            summary_event(1760000005, 2, std::vector{scalar_value("a", 2)}));
}

TEST(TensorboardFile, FileThatWasRemovedIsBegunAgainAndTold) {
  TemporaryFolder folder;
  auto file = TensorboardFile::open(options(folder));
  ASSERT_TRUE(file.ok());
  const std::string removed = file->path();
  file->add(1, 1760000005, {scalar_value("a", 1)});
  ASSERT_TRUE(file->flush().ok());
  std::filesystem::remove(removed);
  const auto told = file->flush();
  ASSERT_FALSE(told.ok());
  EXPECT_THAT(told.error().message, HasSubstr(removed + " was removed"));
  EXPECT_NE(file->path(), removed);
  file->add(2, 1760000006, {scalar_value("a", 2)});
  EXPECT_TRUE(file->flush().ok());
  EXPECT_EQ(events(read_text(file->path())).size(), 2u);
}

TEST(TensorboardFile, FolderThatWasRemovedIsToldOnceAndUsedWhenItIsThereAgain) {
  TemporaryFolder folder;
  auto file = TensorboardFile::open(options(folder));
  ASSERT_TRUE(file.ok());
  std::filesystem::remove_all(folder.path());
  EXPECT_FALSE(file->flush().ok());
  for (int i = 0; i < 3; ++i) {
    file->add(1, 1760000005, {scalar_value("a", 1)});
    EXPECT_TRUE(file->flush().ok());
  }
  std::filesystem::create_directory(folder.path());
  EXPECT_FALSE(file->flush().ok()) << "that it goes on is told";
  file->add(2, 1760000006, {scalar_value("a", 2)});
  EXPECT_TRUE(file->flush().ok());
  EXPECT_EQ(events(read_text(file->path())).size(), 2u);
}

// Told, not judged: what 10^5 numbers cost whoever writes them.
TEST(TensorboardFile, CostOfAHundredThousandNumbers) {
  TemporaryFolder folder;
  auto file = TensorboardFile::open(options(folder));
  ASSERT_TRUE(file.ok());
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < 100'000; ++i)
    file->add(i, 1760000000 + 1e-5 * static_cast<double>(i),
              {scalar_value("loss/generator/generation", 0.5)});
  ASSERT_TRUE(file->flush().ok());
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(file->dropped(), 0u);
  fmt::print("100000 scalars: {:.1f} ms, {} bytes\n", passed.count() * 1e3,
             std::filesystem::file_size(file->path()));
  RecordProperty("milliseconds", fmt::format("{:.1f}", passed.count() * 1e3));
}

}  // namespace
}  // namespace troupe::telemetry
