// Runs of which too few members are left, and such with a member that is slower than the others.

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <ctime>
#include <thread>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

// The processor time of all threads of another process; none where that has ended.
std::chrono::nanoseconds processor_time(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(process, &clock) != 0) return {};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

class ClusterWaiting : public ClusterRun {
 protected:
  Words words_of(const Words& more) const {
    return command(run_words("a", kEndlessRun) + Words{"--workers", "2"} + more);
  }
};

// The simulator sees that no step is made meanwhile.
TEST_F(ClusterWaiting, RunOfTooFewMembersGoesOnWhenOneHasJoined) {
  const std::string address = fmt::format("127.0.0.1:{}", free_port());
  Process process(
      words_of({"--set", "cluster.listen=" + address, "--set", "cluster.failure.min_members=2",
                "--set", "cluster.failure.restart=0"}));
  wait_until_training(process);
  ASSERT_GT(member(1), 0);
  ::kill(member(1), SIGKILL);
  ASSERT_TRUE(wait_until_said(
      process, "1 of at least 2 members (cluster.failure.min_members) are left; waiting"));
  Process newcomer(command({"join", address}));
  ASSERT_TRUE(wait_until_told(process, R"("joined":["member.2"])"));
  wait_until_training(process, steps() + 20);
  stop(process);
  EXPECT_EQ(newcomer.wait().exit_code, 0);
  expect_goes_on({"--workers", "2"});
}

TEST_F(ClusterWaiting, SlowMemberIsGivenLessAndTheBitsStay) {
  const Words sizes{"--set", "train.micro_batches=32", "--set", "actors.replica.count=1"};
  Process process(words_of(sizes + Words{"--set", "cluster.rebalance=true"}));
  wait_until_training(process);
  const pid_t slow = member(1);
  ASSERT_GT(slow, 0);
  // Most of the time it stands still, also while it computes: what it does at once takes longer
  // than it is let. Others may want the processor, so it is let until it has had some of it.
  const auto is_shared_anew = [&] {
    for (int i = 0; i < 10; ++i) {
      const std::chrono::nanoseconds before = processor_time(slow);
      ::kill(slow, SIGCONT);
      wait_for([&] {
        const std::chrono::nanoseconds now = processor_time(slow);
        return now.count() == 0 || now > before + std::chrono::microseconds(500);
      });
      ::kill(slow, SIGSTOP);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return count(R"("shared_anew":"an iteration takes)") > 0;
  };
  EXPECT_TRUE(process.wait_until(is_shared_anew)) << log();
  ::kill(slow, SIGCONT);
  stop(process);
  expect_goes_on({"--workers", "2"}, sizes, 128);
}

}  // namespace
}  // namespace troupe
