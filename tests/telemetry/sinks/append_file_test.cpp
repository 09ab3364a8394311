#include "telemetry/sinks/append_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/process_limits.h"
#include "tests/support/temporary_folder.h"

namespace troupe::telemetry {
namespace {

using testing::HasSubstr;

TEST(AppendFile, DeviceThatIsAlwaysFullIsReportedOnce) {
  auto file = AppendFile::open({.path = "/dev/full", .fresh = false});
  ASSERT_TRUE(file.ok());
  file->add("record");
  const auto first = file->flush();
  ASSERT_FALSE(first.ok());
  EXPECT_EQ(first.error().kind, runtime::ErrorKind::kData);
  EXPECT_THAT(first.error().message, HasSubstr("/dev/full: No space left on device"));
  for (int i = 0; i < 5; ++i) {
    file->add("record");
    EXPECT_TRUE(file->flush().ok());
  }
  EXPECT_EQ(file->dropped(), 0u);
}

TEST(AppendFile, DiskThatIsFullForAWhileGetsEveryByteInTheEnd) {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  auto file = AppendFile::open({.path = path});
  ASSERT_TRUE(file.ok());
  std::string all;
  const auto add = [&](const std::string& record) {
    file->add(record);
    all += record;
  };
  std::vector<bool> flushed;
  std::string text_when_full;
  {
    const FileSizeLimit full(10);  // stops in the middle of the second record
    for (const char* record : {"first..", "second..", "third.."}) {
      add(record);
      flushed.push_back(file->flush().ok());
    }
    text_when_full = read_text(path);
  }
  EXPECT_THAT(flushed, testing::ElementsAre(true, false, true));
  EXPECT_EQ(text_when_full, all.substr(0, 10));
  add("fourth..");
  EXPECT_TRUE(file->flush().ok());
  EXPECT_EQ(read_text(path), all);
  // It is told again when it happens again.
  {
    const FileSizeLimit full(all.size());
    add("fifth..");
    flushed.push_back(file->flush().ok());
  }
  EXPECT_FALSE(flushed.back());
  EXPECT_TRUE(file->flush().ok());
  EXPECT_EQ(read_text(path), all);
}

TEST(AppendFile, WhatFindsNoRoomInMemoryIsLeftOutWhole) {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  auto file = AppendFile::open({.path = path, .limit = 20});
  ASSERT_TRUE(file.ok());
  {
    const FileSizeLimit full(0);
    for (int i = 0; i < 6; ++i) {
      file->add("8 bytes.");
      (void)file->flush();
    }
  }
  EXPECT_EQ(file->dropped(), 4u);
  EXPECT_TRUE(file->flush().ok());
  EXPECT_EQ(read_text(path), "8 bytes.8 bytes.");
  file->add("again");
  EXPECT_TRUE(file->flush().ok());
  EXPECT_EQ(read_text(path), "8 bytes.8 bytes.again");
}

TEST(AppendFile, MuchIsWrittenWithoutBeingToldTo) {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  auto file = AppendFile::open({.path = path});
  ASSERT_TRUE(file.ok());
  file->add(std::string(1 << 20, 'x'));
  EXPECT_EQ(std::filesystem::file_size(path), 1u << 20);
}

TEST(AppendFile, LastBytesAreWrittenWhenItIsDone) {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  {
    auto file = AppendFile::open({.path = path});
    ASSERT_TRUE(file.ok());
    file->add("last");
    const AppendFile moved = std::move(file).value();
  }
  EXPECT_EQ(read_text(path), "last");
}

TEST(AppendFile, FileThatIsThereAlreadyIsRefusedUnlessWanted) {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  std::ofstream(path) << "before ";
  const auto refused = AppendFile::open({.path = path});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr(path + ": File exists"));
  {
    auto file = AppendFile::open({.path = path, .fresh = false});
    ASSERT_TRUE(file.ok());
    file->add("after");
  }
  EXPECT_EQ(read_text(path), "before after");
}

TEST(AppendFile, FileThatWasRemovedIsNoticed) {
  TemporaryFolder folder;
  auto file = AppendFile::open({.path = folder / "file"});
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->vanished());
  std::filesystem::remove(folder / "file");
  EXPECT_TRUE(file->vanished());
}

}  // namespace
}  // namespace troupe::telemetry
