#include "runtime/base/new_file.h"
#include "tests/support/fails_with.h"
#include "tests/support/process_limits.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

namespace troupe::runtime {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(NewFile, StandsAtItsPathOnceItIsFinished) {
  const TemporaryFolder folder;
  write_text(folder / "a", "old");
  auto file = NewFile::create(folder / "a");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write(6, bytes("world")).ok());
  ASSERT_TRUE(file->write(0, bytes("hello")).ok());
  EXPECT_EQ(troupe::read_text(folder / "a"), "old");
  std::vector<std::byte> read(13, std::byte{1});
  ASSERT_TRUE(file->read(0, read).ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(read.data()), read.size()),
            std::string("hello\0world\0\0", 13));
  ASSERT_TRUE(file->resize(9).ok());
  ASSERT_TRUE(file->finish().ok());
  EXPECT_EQ(troupe::read_text(folder / "a"), std::string("hello\0wor", 9));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(NewFile, LeavesTheOldFileAndNoPartWhereItIsGivenUp) {
  const TemporaryFolder folder;
  write_text(folder / "a", "old");
  write_text(folder / "a.part", "of a process that was killed");
  {
    auto file = NewFile::create(folder / "a");
    ASSERT_TRUE(file.ok());
    const FileSizeLimit limit(3);
    EXPECT_THAT(file->write(0, bytes("hello")),
                FailsWith(ErrorKind::kData, "a.part: File too large"));
  }
  EXPECT_EQ(troupe::read_text(folder / "a"), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

// The second writer may be another process.
TEST(NewFile, IsThatOfTheLastToBeginItAndNoOther) {
  const TemporaryFolder folder;
  auto first = NewFile::create(folder / "a");
  auto second = NewFile::create(folder / "a");
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE(first->write(0, bytes("first")).ok());
  EXPECT_THAT(first->finish(), FailsWith(ErrorKind::kData, "a: another process has begun"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  ASSERT_TRUE(second->write(0, bytes("second")).ok());
  ASSERT_TRUE(second->finish().ok());
  EXPECT_EQ(troupe::read_text(folder / "a"), "second");
}

TEST(NewFile, FollowsLinksAndRefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("there", folder / "link");
  auto file = NewFile::create(folder / "link");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->finish().ok());
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"link", "there"}));
  EXPECT_THAT(NewFile::create(folder.path()), FailsWith(ErrorKind::kData, "it is no file"));
  EXPECT_THAT(NewFile::create(folder / "none/a"),
              FailsWith(ErrorKind::kData, "No such file or directory"));
}

}  // namespace
}  // namespace troupe::runtime
