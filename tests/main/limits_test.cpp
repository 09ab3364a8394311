// What is more than the machine has: said before there is a run, not by the system's killer.

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST_F(ToyRun, ARunThatNeedsMoreMemoryThanThereIsIsRefusedBeforeItsFolderExists) {
  const Words huge{"--set", "train.micro_batch=65536", "--set", "train.micro_batches=65536"};
  expect_refused(run("a", huge), 3, {"a run needs", "GB may be used here", "train.micro_batches"});
  EXPECT_FALSE(std::filesystem::exists(path("a")));

  Words check = Words{"check", path("toy.yaml"), "--no-data"} + huge;
  const ProcessEnd end = call(check);
  EXPECT_EQ(end.exit_code, 0) << "the run may be meant for another machine";
  EXPECT_THAT(end.err, HasSubstr("troupe: warning: a run needs"));
  EXPECT_EQ(call({"check", path("toy.yaml"), "--no-data"}).err, "");
}

TEST_F(ToyRun, MembersOfThisMachineThatDoNotFitAreToldToBeFewer) {
  const Words huge{
      "--workers", "3", "--set", "train.micro_batch=65536", "--set", "train.micro_batches=65536"};
  Words check = Words{"check", path("toy.yaml")} + huge;
  const std::string several = " or more on this machine, for 3 processes of up to ";
  const std::string one = " or more in one process, and ";
  for (const ProcessEnd& end : {run("a", huge), call(check)}) {
    EXPECT_THAT(end.err, testing::AnyOf(HasSubstr(several), HasSubstr(one)));
    EXPECT_THAT(end.err, HasSubstr("lower the number of workers here"));
  }
  EXPECT_FALSE(std::filesystem::exists(path("a")));
}

TEST_F(ToyRun, ALimitOnAddressSpaceCountsAsMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space without a limit";
#endif
  const Words large{"--set", "train.micro_batch=65536", "--set", "train.micro_batches=64"};
  expect_refused(run("a", large, {.largest_memory_bytes = std::uint64_t{2} << 30}), 3,
                 {"a run needs", "and 2.1 GB may be used here"});
}

TEST_F(ToyRun, ThreadsAreCapped) {
  for (const Words& words : {Words{"data", "make", path("x.h5"), "--threads", "100000"},
                             Words{"data", "info", path("toy.h5"), "--threads", "1025"},
                             Words{"generate", "c.h5", "--out", "g.h5", "--threads", "1025"}}) {
    expect_refused(call(words), 2, {"--threads: a whole number from 1 to 1024, not 1"});
  }
}

TEST_F(ToyRun, TestEventsThatTheValidatorLacksAreMissedByName) {
  ToyData(18).write(path("toy.h5"));
  expect_refused(run("a", {"--set", "actors.validator.every=1 epoch", "--set",
                           "data.test_one_in=1000", "--set", "train.iterations=1"}),
                 4,
                 {"toy.h5: none of 18 events is for testing (data.test_one_in: 1000)",
                  "actors.validator.every: none"});
}

TEST_F(ToyRun, AnIndexFolderThatCannotBeIsSaidOnce) {
  write_text(path("file"), "");
  const ProcessEnd end =
      run("a", {"--set", "data.index_folder=" + path("file/index"), "--set", "train.iterations=1",
                "--set", "actors.validator.every=1 epoch", "--set", "actors.validator.events=10"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  const std::string log = read_text(path("a/log.txt"));
  const std::string note = "indices are not kept (data.index_folder)";
  EXPECT_THAT(log, HasSubstr(note));
  EXPECT_EQ(log.find(note), log.rfind(note));
  EXPECT_THAT(log, testing::Not(HasSubstr("the index is not kept")));
}

}  // namespace
}  // namespace troupe
