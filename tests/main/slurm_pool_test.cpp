// Nodes that a run gets from Slurm, where that is installed.

#include <gmock/gmock.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/main/slurm_pool.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(SlurmPool, BurstsWhileItTrainsAndSurvivesACancelledJob) {
  Process all(command(endless(slurm_pool(2))));
  ASSERT_TRUE(wait_until(all, "hpc", 2, "running")) << log();
  EXPECT_EQ(burst("4", "hpc").exit_code, 0);
  ASSERT_TRUE(wait_until(all, "hpc", 4, "running")) << log();
  slurm({"/usr/bin/scancel", job_of("hpc.1")});
  ASSERT_TRUE(wait_until_said(all, "hpc.4 is asked for")) << log();
  ASSERT_TRUE(wait_until(all, "hpc", 4, "running")) << log();
  EXPECT_EQ(burst("1", "hpc").exit_code, 0);
  ASSERT_TRUE(wait_until(all, "hpc", 3, "ended")) << log();
  end(all);
}

// Each job wants a whole node, and there are four.
TEST_F(SlurmPool, JobsForWhichThereIsNoRoomStayQueued) {
  Process all(command(endless(slurm_pool(6, "[--partition=alone]"))));
  ASSERT_TRUE(wait_until(all, "hpc", 4, "running")) << log();
  ASSERT_TRUE(wait_until(all, "hpc", 2, "queued")) << log();
  wait_until_training(all, steps() + 40);
  end(all);
}

TEST_F(SlurmPool, JobThatIsRequeuedJoinsAgain) {
  Process all(command(endless(slurm_pool(1, "[--requeue]"))));
  ASSERT_TRUE(wait_until(all, "hpc", 1, "running")) << log();
  const std::string job = job_of("hpc.0");
  slurm({"/usr/bin/scontrol", "requeue", job});
  ASSERT_TRUE(wait_until(all, "hpc", 1, "queued")) << log();
  // Slurm holds a job that was requeued back for two minutes.
  slurm({"/usr/bin/scontrol", "update", "JobId=" + job, "StartTime=now"});
  ASSERT_TRUE(wait_until(all, "hpc", 1, "running")) << log() << jobs();
  EXPECT_EQ(job_of("hpc.0"), job);
  end(all);
}

TEST_F(SlurmPool, ControllerThatIsAwayForAWhileCostsNothing) {
  Process all(command(endless(slurm_pool(2))));
  ASSERT_TRUE(wait_until(all, "hpc", 2, "running")) << log();
  const pid_t controller = std::stoi(read_text(path("slurm/slurmctld.pid")));
  ::kill(controller, SIGSTOP);
  EXPECT_EQ(burst("3", "hpc").exit_code, 0);
  ASSERT_TRUE(wait_until_said(all, "hpc.2 could not be started")) << log();
  wait_until_training(all, steps() + 40);
  ::kill(controller, SIGCONT);
  ASSERT_TRUE(wait_until(all, "hpc", 3, "running")) << log();
  end(all);
}

// Each job wants a whole node, and there are four. Members of a dead head know a state that the
// next one does not have, so their jobs end, and others are asked for.
TEST_F(SlurmPool, JobsOfADeadRunAreTakenOverByTheNextAndEndedByHandIfThereIsNone) {
  Process all(command(endless(slurm_pool(5, "[--partition=alone]"))));
  ASSERT_TRUE(wait_until(all, "hpc", 4, "running")) << log();
  ASSERT_TRUE(wait_until(all, "hpc", 1, "queued")) << log();
  const std::string before = jobs();
  kill_whole(all);
  EXPECT_EQ(jobs(), before) << "they wait for a head";
  const Words resume{"run", "--resume", path("a")};
  expect_refused(call(resume + Words{"--set", "cluster.pools=[]"}), 2,
                 {" of pool hpc may still be there", "troupe pools DIR --stop"});
  Process again(command(resume));
  ASSERT_TRUE(again.wait_until([&] { return nodes()["hpc.4"].state == "running"; })) << log();
  EXPECT_EQ(job_of("hpc.4"), "5") << "it has kept its place in the queue";
  ASSERT_TRUE(wait_until(again, "hpc", 4, "running")) << log();
  ASSERT_TRUE(wait_until(again, "hpc", 1, "queued")) << log();
  if (!is_thorough()) return end(again);
  // Members that have lost their head take some time to leave.
  kill_whole(again);
  EXPECT_NE(jobs(), "");
  EXPECT_THAT(pools({"--stop"}), Not(HasSubstr("running")));
  EXPECT_EQ(jobs(), "");
  expect_goes_on({"--set", "cluster.pools=[]"});
}

class SlurmPoolAtLength : public SlurmPool {
 protected:
  SlurmPoolAtLength() : SlurmPool("plain", true) {}
};

TEST_F(SlurmPoolAtLength, NodeThatCannotRunTheProgramTellsWhy) {
  Process all(command(endless(slurm_pool(1, "[]", ", program: /nowhere/troupe"))));
  ASSERT_TRUE(wait_until_said(all, "hpc.0 is gone: ")) << log();
  EXPECT_THAT(log(), HasSubstr("hpc.0.log ends with: "));
  ASSERT_TRUE(all.wait_until([&] { return nodes()["hpc.0"].state == "dead"; })) << log();
  EXPECT_THAT(nodes()["hpc.0"].cause, HasSubstr("/nowhere/troupe: not found"));
  ASSERT_TRUE(wait_until_said(all, "hpc.1 is asked for")) << log();
  stop(all);
}

TEST_F(SlurmPoolAtLength, NodeOfTwoMembersGetsOneThatIsLostBackAndGivesBothBack) {
  Process all(command(endless(slurm_pool(1, "[]", ", workers: 2"))));
  const auto trains = [&](const std::string& state, std::size_t count) {
    return all.wait_until([&] {
      std::size_t found = 0;
      for (const auto& [name, node] : nodes()) {
        found += name.starts_with("member.") && node.state == state ? 1 : 0;
      }
      return found == count;
    });
  };
  // One is the run's own.
  ASSERT_TRUE(trains("running", 3)) << log();
  std::vector<pid_t> members;
  for (const auto& [process, words] : processes()) {
    const bool is_of_node = words.find("--launched hpc.0@") != std::string::npos;
    if (is_of_node && words.find("--workers") == std::string::npos) members.push_back(process);
  }
  ASSERT_EQ(members.size(), 2U);
  ::kill(members[1], SIGKILL);
  ASSERT_TRUE(trains("dead", 1)) << log();
  ASSERT_TRUE(trains("running", 3)) << log();
  // Slurm sends the signal to every process of the job.
  slurm({"/usr/bin/scancel", job_of("hpc.0")});
  ASSERT_TRUE(trains("running", 1)) << log();
  ASSERT_TRUE(trains("running", 3)) << log();
  EXPECT_TRUE(trains("dead", 1)) << log();
  EXPECT_EQ(burst("0", "hpc").exit_code, 0);
  ASSERT_TRUE(wait_until(all, "hpc", 1, "ended")) << log();
  ASSERT_TRUE(trains("running", 1)) << log();
  EXPECT_EQ(jobs(), "");
  end(all);
}

}  // namespace
}  // namespace troupe
