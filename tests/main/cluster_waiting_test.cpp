// Runs of which too few members are left, and such with a member that is slower than the others.

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <thread>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"
#include "tests/main/ledger_check.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class ClusterWaiting : public ClusterRun {
 protected:
  Words words_of(const Words& more) const {
    Words words = run_words("a", until_iteration(kIterations));
    words.insert(words.end(), {"--workers", "2", "--json"});
    words.insert(words.end(), more.begin(), more.end());
    return command(words);
  }
  bool is_written(Process& process, const std::string& file, const std::string& what) const {
    return wait_until(process,
                      [&] { return read_text(path(file)).find(what) != std::string::npos; });
  }
  // Its steps have been made once, and its state is that of a run that nothing happened to.
  void expect_whole(Process& process, const Words& more = {}, std::uint64_t events = 16) const {
    const ProcessEnd end = process.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    EXPECT_EQ(last_line(end)["state_hash"].text(),
              hash_of("whole", until_iteration(kIterations, more)));
    expect_clean_ledger(path("a"), 4 * kIterations, events);
  }

  static constexpr std::uint64_t kIterations = 800;
};

TEST_F(ClusterWaiting, RunOfTooFewMembersGoesOnWhenOneHasJoined) {
  const std::string address = fmt::format("127.0.0.1:{}", free_port());
  Process process(
      words_of({"--set", "cluster.listen=" + address, "--set", "cluster.failure.min_members=2",
                "--set", "cluster.failure.restart=0"}));
  wait_until_training(process, "a");
  ASSERT_GT(member(1), 0);
  ::kill(member(1), SIGKILL);
  ASSERT_TRUE(
      is_written(process, "a/log.txt",
                 "1 of at least 2 members (cluster.failure.min_members) are left; waiting"));
  // Whatever was under way has been told by now, or never will be.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const std::size_t made = steps("a");
  EXPECT_LT(made, 4 * kIterations);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(steps("a"), made);
  Process newcomer(command({"join", address}));
  expect_whole(process);
  EXPECT_EQ(newcomer.wait().exit_code, 0);
  EXPECT_THAT(read_text(path("a/metrics.jsonl")), HasSubstr(R"("joined":["member.2"])"));
}

TEST_F(ClusterWaiting, RunThatNobodyCanJoinEndsWithItsStateSaved) {
  Process process(words_of(
      {"--set", "cluster.failure={min_members: 2, restart: 0}", "--set", "cluster.joiners=0"}));
  wait_until_training(process, "a");
  ::kill(member(0), SIGKILL);
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 5) << end.err;
  EXPECT_THAT(end.err, HasSubstr("1 of at least 2 members"));
  EXPECT_THAT(end.err, HasSubstr("--resume"));
  EXPECT_EQ(resumed("a", {"--workers", "2"})["state_hash"].text(),
            hash_of("whole", until_iteration(kIterations)));
  expect_clean_ledger(path("a"), 4 * kIterations);
}

TEST_F(ClusterWaiting, MoreThanTheRunBeginsWithAreRefused) {
  const ProcessEnd end = run("a", {"--workers", "2", "--set", "cluster.failure.min_members=3"});
  expect_refused(end, 3, {"cluster.failure.min_members: 3 is more than the 2 workers"});
}

TEST_F(ClusterWaiting, SlowMemberIsGivenLessAndTheBitsStay) {
  const Words sizes{"--set", "train.micro_batches=8", "--set", "actors.replica.count=1"};
  Words words = sizes;
  words.insert(words.end(), {"--set", "cluster.rebalance=true"});
  Process process(words_of(words));
  wait_until_training(process, "a");
  const pid_t slow = member(1);
  ASSERT_GT(slow, 0);
  // Most of the time it stands still.
  const auto is_shared_anew = [&] {
    for (int i = 0; i < 10; ++i) {
      ::kill(slow, SIGSTOP);
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      ::kill(slow, SIGCONT);
      std::this_thread::sleep_for(std::chrono::milliseconds(4));
    }
    return read_text(path("a/metrics.jsonl")).find(R"("shared_anew":"an iteration takes)") !=
           std::string::npos;
  };
  ASSERT_TRUE(wait_until(process, is_shared_anew));
  expect_whole(process, sizes, 32);
}

}  // namespace
}  // namespace troupe
