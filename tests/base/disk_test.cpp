#include "runtime/base/disk.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace troupe::runtime {
namespace {

using ::testing::HasSubstr;

TEST(FileDisk, LinkLeadsToAFileBesideItAndIsReplacedByTheNext) {
  const TemporaryFolder folder;
  FileDisk disk;
  for (const char* name : {"one", "two"}) {
    std::ofstream(folder / name) << name;
    ASSERT_TRUE(disk.link(folder / "latest", name).ok());
    EXPECT_EQ(std::filesystem::read_symlink(folder / "latest"), name);
  }
  EXPECT_EQ(disk.read(folder / "latest")->size(), 3u);
  EXPECT_EQ(disk.list(folder.path()).value(), (std::vector<std::string>{"latest", "one", "two"}));
  const auto refused = disk.link(folder / "none/latest", "one");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kData);
}

TEST(ReadFile, GivesTextOfARegularFileUpToItsLimit) {
  const TemporaryFolder folder;
  std::ofstream(folder / "text") << "12345";
  EXPECT_EQ(read_file(folder / "text", 5).value(), "12345");
  EXPECT_THAT(read_file(folder / "text", 4).error().message,
              HasSubstr("text holds more than 4 bytes"));
  // Its size is told to be 0.
  EXPECT_THAT(read_file("/proc/self/status", 1 << 20).value(), HasSubstr("Pid:"));
}

TEST(ReadFile, RefusesWhatIsNoFileWithoutWaiting) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder / "none", folder.path(), folder / "pipe"}) {
    ASSERT_THAT(read_file(path, 100), FailsWith(ErrorKind::kData, path)) << path;
  }
}

TEST(ReadText, WaitsForTheWriterOfAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const Descriptor reader(::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(read_text(reader, 100).value(), "") << "nobody writes to it";
  Descriptor writer(::open((folder / "pipe").c_str(), O_WRONLY | O_CLOEXEC));
  std::thread late([&writer] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(::write(writer.number(), "late", 4), 4);
    writer.close();
  });
  EXPECT_EQ(read_text(reader, 100).value(), "late");
  late.join();
}

TEST(WriteNewFile, WritesWithItsModeAndNeverOverAnother) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_new_file(folder / "key", "secret", 0600).ok());
  EXPECT_EQ(read_file(folder / "key", 100).value(), "secret");
  EXPECT_EQ(std::filesystem::status(folder / "key").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const auto again = write_new_file(folder / "key", "other", 0600);
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().message, HasSubstr(folder / "key"));
  EXPECT_EQ(read_file(folder / "key", 100).value(), "secret");
  EXPECT_FALSE(write_new_file("/dev/full", "text", 0600).ok()) << "it exists";
}

}  // namespace
}  // namespace troupe::runtime
