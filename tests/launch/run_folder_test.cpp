#include "launch/folder/run_folder.h"

#include <gmock/gmock.h>

#include "launch/folder/run_disk.h"
#include "tests/launch/launch_support.h"

namespace troupe::launch {
namespace {

// What a process that was killed while it wrote has left; in the run's folder itself there may be
// files of people, too.
TEST(RunFolder, TemporaryFilesOfItsOwnWritesAreRemovedWhereverTheRunWrites) {
  const Folder folder;
  runtime::FileDisk disk;
  std::vector<std::string> temporary{"topology.yaml.part", "metrics.jsonl.part"};
  std::vector<std::string> kept{"topology.yaml", "film.part"};
  for (const char* place : {"checkpoints/", "showers/", "trace/"}) {
    std::filesystem::create_directories(folder.file(place));
    temporary.push_back(std::string(place) + "a.json.part");
    kept.push_back(std::string(place) + "a.json");
  }
  for (const auto* names : {&temporary, &kept}) {
    for (const std::string& name : *names) std::ofstream(folder.file(name)) << "x";
  }
  ASSERT_TRUE(RunFolder::reopen(folder.file(""), disk).ok());
  for (const std::string& name : temporary) {
    EXPECT_FALSE(std::filesystem::exists(folder.file(name))) << name;
  }
  for (const std::string& name : kept) {
    EXPECT_TRUE(std::filesystem::exists(folder.file(name))) << name;
  }
}

using testing::AllOf;
using testing::HasSubstr;

void write(const std::string& path) { std::ofstream(path) << "x"; }

// "" when the folder is taken.
std::string complaint(const runtime::Result<RunFolder>& folder) {
  return folder.ok() ? "" : folder.error().message;
}

TEST(RunFolder, WhatARunThatCouldNotBeginHasLeftStays) {
  const Folder folder;
  runtime::FileDisk disk;
  std::filesystem::create_directories(folder.file("checkpoints"));
  std::filesystem::create_directories(folder.file("lost+found"));
  const std::vector<std::string> names{"log.txt", "page.token", ".hidden", "checkpoints/a.part"};
  for (const std::string& name : names) write(folder.file(name));
  EXPECT_EQ(complaint(RunFolder::create(folder.file(""), disk)), "");
  for (const std::string& name : names) {
    EXPECT_TRUE(std::filesystem::exists(folder.file(name))) << name;
  }
}

TEST(RunFolder, OneThatHoldsAnythingElseIsRefusedAndStaysAsItIs) {
  const Folder folder;
  runtime::FileDisk disk;
  write(folder.file("thesis.tex"));
  EXPECT_THAT(complaint(RunFolder::create(folder.file(""), disk)),
              AllOf(HasSubstr("is not empty (it holds thesis.tex)"), HasSubstr("--out")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("checkpoints")));
  EXPECT_THAT(complaint(RunFolder::create("/", disk)), HasSubstr("is not empty"));
  EXPECT_THAT(complaint(RunFolder::create("", disk)), HasSubstr("--out is empty"));
}

TEST(RunFolder, LinksInThePlaceOfItsFilesAreRefused) {
  for (const char* name : {"log.txt", "nodes.json", "showers", "checkpoints", ".lock"}) {
    const Folder folder, elsewhere;
    runtime::FileDisk disk;
    std::filesystem::create_symlink(elsewhere.file("target"), folder.file(name));
    EXPECT_THAT(complaint(RunFolder::create(folder.file(""), disk)),
                HasSubstr(std::string(name) + " is a link"));
    write(folder.file("topology.yaml"));
    EXPECT_THAT(complaint(RunFolder::reopen(folder.file(""), disk)),
                HasSubstr(std::string(name) + " is a link"));
    EXPECT_FALSE(std::filesystem::exists(elsewhere.file("target")));
  }
}

TEST(RunFolder, LinksInItsFoldersAreRefusedButForThoseItMakes) {
  const Folder folder, elsewhere;
  runtime::FileDisk disk;
  std::filesystem::create_directory(folder.file("checkpoints"));
  for (const char* own : {"latest", "latest.part"}) {
    std::filesystem::create_symlink("step-1.h5", folder.file("checkpoints/") + own);
  }
  EXPECT_TRUE(RunFolder::create(folder.file(""), disk).ok());
  std::filesystem::create_symlink(elsewhere.file("a"), folder.file("checkpoints/best.json"));
  EXPECT_THAT(complaint(RunFolder::create(folder.file(""), disk)),
              HasSubstr("checkpoints/best.json is a link"));
}

// A disk that keeps a run's folder, whose log has a file in it.
class KeptFolder : public testing::Test {
 protected:
  KeptFolder() {
    write(run_ + "/topology.yaml");
    run_disk_.on_made_again([this](runtime::Disk& disk) {
      EXPECT_TRUE(disk.replace(run_ + "/topology.yaml", {}).ok());
    });
  }
  runtime::Log open_log() const {
    runtime::LogOptions options;
    options.to_stderr = false;
    options.file = run_ + "/log.txt";
    return *runtime::Log::open(options);
  }
  runtime::Result<void> replace(const std::string& name) {
    return run_disk_.replace(run_ + "/" + name, {});
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(run_ + "/" + name); }

  const Folder place_;
  const std::string run_ = place_.file("run");
  runtime::FileDisk disk_;
  RunFolder folder_ = *RunFolder::create(run_, disk_);
  const runtime::Log log_ = open_log();
  RunDisk run_disk_{folder_, disk_, log_};
};

TEST_F(KeptFolder, OneThatIsThereIsLeftAlone) {
  EXPECT_TRUE(replace("checkpoints/a").ok());
  EXPECT_EQ(run_disk_.made_again(), 0);
}

// As by "rm -r RUN/*", or by removing the folder while something else is written into it.
TEST_F(KeptFolder, OneThatWasEmptiedIsFilledAgain) {
  for (const auto& names : std::vector<std::vector<const char*>>{
           {"topology.yaml", "log.txt", "checkpoints"}, {"topology.yaml"}, {".lock"}}) {
    const int before = run_disk_.made_again();
    log_.info("before");
    for (const char* name : names) std::filesystem::remove_all(run_ + "/" + name);
    EXPECT_TRUE(replace("checkpoints/a").ok());
    EXPECT_EQ(run_disk_.made_again(), before + 1) << names[0];
    for (const char* name : names) EXPECT_TRUE(exists(name)) << name;
    EXPECT_THAT(text_of(run_ + "/log.txt"),
                AllOf(HasSubstr("before"), HasSubstr("files of the run were removed from")));
    EXPECT_THAT(complaint(RunFolder::reopen(run_, disk_)), HasSubstr("still going on"));
  }
}

// As by somebody who has not come to an end of removing.
TEST_F(KeptFolder, WhatIsRemovedAgainIsPutBackAgainAndSaidOnce) {
  int times = 0;
  run_disk_.on_made_again([&](runtime::Disk& disk) {
    if (++times == 1) return;
    EXPECT_TRUE(disk.replace(run_ + "/topology.yaml", {}).ok());
  });
  std::filesystem::remove(run_ + "/topology.yaml");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(replace("checkpoints/a").ok());
  EXPECT_EQ(times, 1) << "not at each write";
  EXPECT_TRUE(run_disk_.hold(true).ok());
  EXPECT_EQ(times, 2);
  EXPECT_TRUE(exists("topology.yaml"));
  const std::string log = text_of(run_ + "/log.txt");
  EXPECT_EQ(log.find("files of the run were removed"), log.rfind("files of the run were removed"));
}

TEST_F(KeptFolder, OneThatWasRemovedIsMadeAgainWithWhatItsOpenFilesHeld) {
  log_.info("before");
  std::filesystem::remove_all(run_);
  EXPECT_TRUE(replace("checkpoints/a").ok());
  EXPECT_EQ(run_disk_.made_again(), 1);
  EXPECT_TRUE(exists("checkpoints/a"));
  EXPECT_TRUE(exists("topology.yaml"));
  EXPECT_THAT(text_of(run_ + "/log.txt"),
              AllOf(HasSubstr("before"), HasSubstr("run was removed while the run goes on")));
  EXPECT_THAT(complaint(RunFolder::reopen(run_, disk_)), HasSubstr("still going on"));
}

TEST_F(KeptFolder, OneThatWasMovedIsMadeAgainAndItsNewPlaceIsTold) {
  std::filesystem::rename(run_, place_.file("archive"));
  EXPECT_TRUE(run_disk_.hold().ok());
  EXPECT_THAT(text_of(run_ + "/log.txt"), HasSubstr("was moved to " + place_.file("archive")));
  EXPECT_THAT(complaint(RunFolder::reopen(run_, disk_)), HasSubstr("still going on"));
}

TEST_F(KeptFolder, AnotherRunInItsPlaceIsLeftAlone) {
  std::filesystem::remove_all(run_);
  std::filesystem::create_directories(run_ + "/checkpoints");
  write(run_ + "/topology.yaml");
  for (int i = 0; i < 2; ++i) {
    const auto replaced = replace("checkpoints/a");
    ASSERT_FALSE(replaced.ok());
    EXPECT_THAT(replaced.error().message, HasSubstr("another run has taken the place"));
  }
  EXPECT_FALSE(exists("checkpoints/a"));
  EXPECT_FALSE(exists("log.txt"));
  std::filesystem::remove_all(run_);
  EXPECT_TRUE(replace("checkpoints/a").ok()) << "it has gone";
}

TEST(RunFolder, ThatIsDiscardedLeavesNothingThatItMade) {
  const Folder folder;
  runtime::FileDisk disk;
  const std::string path = folder.file("runs/a");
  {
    const auto run = RunFolder::create(path, disk);
    ASSERT_TRUE(run.ok());
    std::ofstream(run->file("log.txt")) << "x";
    EXPECT_TRUE(run->discard());
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("runs")));
}

TEST(RunFolder, ThatIsDiscardedLeavesWhatOthersMade) {
  const Folder folder;
  runtime::FileDisk disk;
  const std::string path = folder.file("runs/a");
  std::filesystem::create_directories(path);
  for (const char* name : {"/log.txt", "/.notes"}) std::ofstream(path + name) << "x";
  {
    const auto run = RunFolder::create(path, disk);
    ASSERT_TRUE(run.ok());
    std::ofstream(folder.file("runs/b")) << "x";
    EXPECT_FALSE(run->discard());
  }
  EXPECT_FALSE(std::filesystem::exists(path + "/checkpoints"));
  for (const char* name : {"runs/a/log.txt", "runs/a/.notes", "runs/b"}) {
    EXPECT_TRUE(std::filesystem::exists(folder.file(name))) << name;
  }
  ASSERT_TRUE(std::filesystem::remove(path + "/log.txt"));
  std::ofstream(path + "/topology.yaml") << "x";
  const auto again = RunFolder::reopen(path, disk);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->discard());
  EXPECT_TRUE(std::filesystem::exists(path + "/topology.yaml"));
}

}  // namespace
}  // namespace troupe::launch
