#include "launch/folder/run_folder.h"

#include <gmock/gmock.h>

#include "launch/folder/run_disk.h"
#include "tests/launch/launch_support.h"

namespace troupe::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void write(const std::string& path) { std::ofstream(path) << "x"; }

// "" when the folder is taken.
std::string complaint(const runtime::Result<RunFolder>& folder) {
  return folder.ok() ? "" : folder.error().message;
}

class RunFolderTest : public testing::Test {
 protected:
  void make(const std::vector<std::string>& names) const {
    for (const std::string& name : names) write(folder_ / name);
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }
  // Complaints about the folder as that of a new run, and of one that goes on.
  std::string created() { return complaint(RunFolder::create(folder_ / "", disk_)); }
  std::string reopened() { return complaint(RunFolder::reopen(folder_ / "", disk_)); }

  const TemporaryFolder folder_, elsewhere_;
  runtime::FileDisk disk_;
};

// A process that was killed while it wrote has left them. The run's folder itself may hold files of
// people, too.
TEST_F(RunFolderTest, TemporaryFilesOfItsOwnWritesAreRemovedWhereverTheRunWrites) {
  std::vector<std::string> temporary{"topology.yaml.part", "metrics.jsonl.part"};
  std::vector<std::string> kept{"topology.yaml", "film.part"};
  for (const std::string place : {"checkpoints/", "showers/", "trace/"}) {
    std::filesystem::create_directories(folder_ / place);
    temporary.push_back(place + "a.json.part");
    kept.push_back(place + "a.json");
  }
  make(temporary);
  make(kept);
  ASSERT_EQ(reopened(), "");
  for (const std::string& name : temporary) EXPECT_FALSE(exists(name)) << name;
  for (const std::string& name : kept) EXPECT_TRUE(exists(name)) << name;
}

TEST_F(RunFolderTest, WhatARunThatCouldNotBeginHasLeftStays) {
  std::filesystem::create_directories(folder_ / "checkpoints");
  std::filesystem::create_directories(folder_ / "lost+found");
  const std::vector<std::string> names{"log.txt", "page.token", ".hidden", "checkpoints/a.part"};
  make(names);
  EXPECT_EQ(created(), "");
  for (const std::string& name : names) EXPECT_TRUE(exists(name)) << name;
}

TEST_F(RunFolderTest, OneThatHoldsAnythingElseIsRefusedAndStaysAsItIs) {
  make({"thesis.tex"});
  EXPECT_THAT(created(),
              AllOf(HasSubstr("is not empty (it holds thesis.tex)"), HasSubstr("--out")));
  EXPECT_FALSE(exists("checkpoints"));
  EXPECT_THAT(complaint(RunFolder::create("/", disk_)), HasSubstr("is not empty"));
  EXPECT_THAT(complaint(RunFolder::create("", disk_)), HasSubstr("--out is empty"));
}

TEST_F(RunFolderTest, OneInWhichARunWasKilledBeforeItHadItsTopologyIsFree) {
  make({"topology.yaml.part", "nodes.json.part"});
  EXPECT_EQ(created(), "");
}

TEST_F(RunFolderTest, OneThatHoldsAnUnfinishedFileOfAnotherProgramIsRefused) {
  make({"film.part"});
  EXPECT_THAT(created(), HasSubstr("is not empty (it holds film.part)"));
}

TEST_F(RunFolderTest, LinksInThePlaceOfItsFilesAreRefused) {
  for (const std::string name : {"log.txt", "nodes.json", "showers", "checkpoints", ".lock"}) {
    std::filesystem::create_symlink(elsewhere_ / "target", folder_ / name);
    EXPECT_THAT(created(), HasSubstr(name + " is a link"));
    make({"topology.yaml"});
    EXPECT_THAT(reopened(), HasSubstr(name + " is a link"));
    EXPECT_THAT(elsewhere_.names(), testing::IsEmpty());
    for (const std::string& made : folder_.names()) std::filesystem::remove_all(folder_ / made);
  }
}

TEST_F(RunFolderTest, LinksInItsFoldersAreRefusedButForThoseItMakes) {
  std::filesystem::create_directory(folder_ / "checkpoints");
  for (const std::string own : {"latest", "latest.part"}) {
    std::filesystem::create_symlink("step-1.h5", folder_ / ("checkpoints/" + own));
  }
  EXPECT_EQ(created(), "");
  std::filesystem::create_symlink(elsewhere_ / "a", folder_ / "checkpoints/best.json");
  EXPECT_THAT(created(), HasSubstr("checkpoints/best.json is a link"));
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

  const TemporaryFolder place_;
  const std::string run_ = place_ / "run";
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
    EXPECT_THAT(read_text(run_ + "/log.txt"),
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
  const std::string log = read_text(run_ + "/log.txt");
  EXPECT_EQ(log.find("files of the run were removed"), log.rfind("files of the run were removed"));
}

TEST_F(KeptFolder, OneThatWasRemovedIsMadeAgainWithWhatItsOpenFilesHeld) {
  log_.info("before");
  std::filesystem::remove_all(run_);
  EXPECT_TRUE(replace("checkpoints/a").ok());
  EXPECT_EQ(run_disk_.made_again(), 1);
  EXPECT_TRUE(exists("checkpoints/a"));
  EXPECT_TRUE(exists("topology.yaml"));
  EXPECT_THAT(read_text(run_ + "/log.txt"),
              AllOf(HasSubstr("before"), HasSubstr("run was removed while the run goes on")));
  EXPECT_THAT(complaint(RunFolder::reopen(run_, disk_)), HasSubstr("still going on"));
}

TEST_F(KeptFolder, OneThatWasMovedIsMadeAgainAndItsNewPlaceIsTold) {
  std::filesystem::rename(run_, place_ / "archive");
  EXPECT_TRUE(run_disk_.hold().ok());
  EXPECT_THAT(read_text(run_ + "/log.txt"), HasSubstr("was moved to " + place_ / "archive"));
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

TEST_F(RunFolderTest, ThatIsDiscardedLeavesNothingThatItMade) {
  const std::string path = folder_ / "runs/a";
  {
    const auto run = RunFolder::create(path, disk_);
    ASSERT_TRUE(run.ok());
    std::ofstream(run->file("log.txt")) << "x";
    EXPECT_TRUE(run->discard());
  }
  EXPECT_FALSE(exists("runs"));
}

TEST_F(RunFolderTest, ThatIsDiscardedLeavesWhatOthersMade) {
  const std::string path = folder_ / "runs/a";
  std::filesystem::create_directories(path);
  for (const char* name : {"/log.txt", "/.notes"}) std::ofstream(path + name) << "x";
  {
    const auto run = RunFolder::create(path, disk_);
    ASSERT_TRUE(run.ok());
    std::ofstream(folder_ / "runs/b") << "x";
    EXPECT_FALSE(run->discard());
  }
  EXPECT_FALSE(std::filesystem::exists(path + "/checkpoints"));
  for (const char* name : {"runs/a/log.txt", "runs/a/.notes", "runs/b"}) {
    EXPECT_TRUE(exists(name)) << name;
  }
  ASSERT_TRUE(std::filesystem::remove(path + "/log.txt"));
  std::ofstream(path + "/topology.yaml") << "x";
  const auto again = RunFolder::reopen(path, disk_);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->discard());
  EXPECT_TRUE(std::filesystem::exists(path + "/topology.yaml"));
}

}  // namespace
}  // namespace troupe::launch
