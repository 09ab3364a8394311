#include "launch/run_folder.h"

#include <gmock/gmock.h>

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

TEST(RunFolder, ThatIsNewKeepsEverything) {
  const Folder folder;
  runtime::FileDisk disk;
  std::filesystem::create_directories(folder.file("checkpoints"));
  for (const char* name : {"a.part", "checkpoints/a.part"}) {
    std::ofstream(folder.file(name)) << "x";
  }
  ASSERT_TRUE(RunFolder::create(folder.file(""), disk).ok());
  for (const char* name : {"a.part", "checkpoints/a.part"}) {
    EXPECT_TRUE(std::filesystem::exists(folder.file(name))) << name;
  }
}

TEST(RunFolder, ThatIsDiscardedLeavesNothingThatItMade) {
  const Folder folder;
  runtime::FileDisk disk;
  const std::string path = folder.file("runs/a");
  {
    const auto run = RunFolder::create(path, disk);
    ASSERT_TRUE(run.ok());
    std::ofstream(run->file("log.txt")) << "x";
    run->discard();
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("runs")));
}

TEST(RunFolder, ThatIsDiscardedLeavesWhatOthersMade) {
  const Folder folder;
  runtime::FileDisk disk;
  const std::string path = folder.file("runs/a");
  std::filesystem::create_directories(path);
  for (const char* name : {"/log.txt", "/notes.txt"}) std::ofstream(path + name) << "x";
  {
    const auto run = RunFolder::create(path, disk);
    ASSERT_TRUE(run.ok());
    std::ofstream(folder.file("runs/b")) << "x";
    run->discard();
  }
  EXPECT_FALSE(std::filesystem::exists(path + "/checkpoints"));
  for (const char* name : {"runs/a/log.txt", "runs/a/notes.txt", "runs/b"}) {
    EXPECT_TRUE(std::filesystem::exists(folder.file(name))) << name;
  }
  ASSERT_TRUE(std::filesystem::remove(path + "/log.txt"));
  std::ofstream(path + "/topology.yaml") << "x";
  const auto again = RunFolder::reopen(path, disk);
  ASSERT_TRUE(again.ok());
  again->discard();
  EXPECT_TRUE(std::filesystem::exists(path + "/topology.yaml"));
}

}  // namespace
}  // namespace troupe::launch
