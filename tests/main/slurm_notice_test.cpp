// Slurm takes nodes of a run away: their time is over, or a job of a higher partition wants them.

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "tests/main/slurm_pool.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

// Members leave in order at the notice, and the run does not wait until they are found dead.
class SlurmNotice : public SlurmPool {
 protected:
  using SlurmPool::SlurmPool;

  void expect_left_in_order() const {
    EXPECT_THAT(log(), HasSubstr(" has left the run"));
    EXPECT_THAT(log(), Not(HasSubstr("is lost:")));
    EXPECT_THAT(log(), Not(HasSubstr("was lost")));
    for (const auto& [name, node] : nodes()) {
      const bool is_dead = name.starts_with("member.") && node.state == "dead";
      EXPECT_FALSE(is_dead) << name << ": " << node.cause;
    }
  }
  // What the jobs have written, and Slurm has when it ended them.
  std::string job_logs() const {
    std::string text;
    for (const auto& file : std::filesystem::directory_iterator(path("a/pools"))) {
      text += read_text(file.path());
    }
    return text;
  }
  // A job that wants so many whole nodes until end_urgent().
  void submit_urgent(int count) const {
    slurm({"/usr/bin/sbatch", "--partition=urgent", fmt::format("--nodes={}", count),
           "--output=/dev/null", "--job-name=urgent", "--wrap=exec sleep 600"});
  }
  void end_urgent() const { slurm({"/usr/bin/scancel", "--name=urgent"}); }
  bool wait_until_urgent_runs(Process& process) const {
    return process.wait_until([&] { return jobs().find("RUNNING urgent") != std::string::npos; });
  }
};

class SlurmTimeLimit : public SlurmNotice {
 protected:
  SlurmTimeLimit() : SlurmNotice("plain", true) {}
};

// Slurm sends the notice 30 s to 60 s after the start of a job of two minutes.
TEST_F(SlurmTimeLimit, NodesWhoseTimeIsOverLeaveInOrderAndOthersCome) {
  Process all(command(endless(slurm_pool(2, "[--time=2]"))));
  ASSERT_TRUE(wait_until(all, "hpc", 2, "running")) << log();
  ASSERT_TRUE(wait_until_said(all, "hpc.3 is asked for")) << log();
  ASSERT_TRUE(wait_until(all, "hpc", 2, "running")) << log();
  expect_left_in_order();
  EXPECT_THAT(job_logs(), Not(HasSubstr("DUE TO"))) << "they do not wait for the end";
  end(all);
}

class SlurmCancelling : public SlurmNotice {
 protected:
  SlurmCancelling() : SlurmNotice("cancelling") {}
};

TEST_F(SlurmCancelling, NodesAreLeftToAJobThatIsMoreUrgentAndComeBackAfterIt) {
  Process all(command(endless(slurm_pool(4))));
  ASSERT_TRUE(wait_until(all, "hpc", 4, "running")) << log();
  submit_urgent(2);
  ASSERT_TRUE(wait_until_urgent_runs(all)) << log() << jobs();
  ASSERT_TRUE(wait_until(all, "hpc", 2, "queued")) << log();
  wait_until_training(all, steps() + 40);
  end_urgent();
  ASSERT_TRUE(wait_until(all, "hpc", 4, "running")) << log();
  expect_left_in_order();
  EXPECT_THAT(job_logs(), Not(HasSubstr("DUE TO"))) << "they do not wait for the end";
  end(all);
}

class SlurmRequeuing : public SlurmNotice {
 protected:
  SlurmRequeuing() : SlurmNotice("requeuing", true) {}
};

// The notice is the signal that Slurm sends before it kills.
TEST_F(SlurmRequeuing, JobThatIsPutBackJoinsAgainAfterTheOneThatIsMoreUrgent) {
  Process all(command(endless(slurm_pool(4, "[--requeue]"))));
  ASSERT_TRUE(wait_until(all, "hpc", 4, "running")) << log();
  submit_urgent(1);
  ASSERT_TRUE(wait_until_urgent_runs(all)) << log() << jobs();
  ASSERT_TRUE(wait_until(all, "hpc", 1, "queued")) << log();
  EXPECT_THAT(log(), Not(HasSubstr("hpc.4"))) << "the same job is waited for";
  end_urgent();
  // Slurm holds it back for two minutes.
  std::string job;
  for (const char* node : {"hpc.0", "hpc.1", "hpc.2", "hpc.3"}) {
    if (nodes()[node].state == "queued") job = job_of(node);
  }
  slurm({"/usr/bin/scontrol", "update", "JobId=" + job, "StartTime=now"});
  ASSERT_TRUE(wait_until(all, "hpc", 4, "running")) << log() << jobs();
  expect_left_in_order();
  EXPECT_THAT(job_logs(), HasSubstr("DUE TO PREEMPTION"));
  end(all);
}

}  // namespace
}  // namespace troupe
