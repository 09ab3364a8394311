// `troupe run` as srun, mpirun and operators start it: several times alike.

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class AllocationRun : public ClusterRun {
 protected:
  // The words of one process, with these variables in its environment.
  Words among_others(const std::vector<std::string>& variables, const Words& more) const {
    Words words{"/usr/bin/env"};
    for (const std::string& each : variables) words.push_back(each);
    return words + command(run_words("a", more));
  }
  // As srun starts task `rank` of `size`.
  Words task(int rank, int size, const Words& more) const {
    return among_others({"SLURM_JOB_ID=17", "SLURM_STEP_ID=0", fmt::format("SLURM_PROCID={}", rank),
                         fmt::format("SLURM_STEP_NUM_TASKS={}", size)},
                        more);
  }
  std::string hash_of_alone(const Words& more) const { return hash_of("alone", more); }
  std::string hash_of_run() const {
    return parse_json(read_text(path("a/summary.json")))["state_hash"].text();
  }
  // Two processes with these variables, of which the second comes first.
  template <class VariablesOfRank>
  void expect_pair_to_train(const VariablesOfRank& variables) {
    const Words twelve = until_iteration(12);
    Process second(among_others(variables(1), twelve));
    Process first(among_others(variables(0), twelve));
    for (Process* each : {&first, &second}) {
      const ProcessEnd end = each->wait();
      EXPECT_EQ(end.exit_code, 0) << end.err;
    }
    EXPECT_EQ(hash_of_run(), hash_of_alone(twelve));
    EXPECT_EQ(nodes().size(), 3U);
  }
  // Three processes that a starter's words start.
  void expect_to_train_as_one_process(const Words& starter) {
    const Words twelve = until_iteration(12);
    const ProcessEnd end = Process(starter + command(run_words("a", twelve))).wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    EXPECT_EQ(hash_of_run(), hash_of_alone(twelve));
    EXPECT_TRUE(all_gone());
  }
  // A starter that lets the others live.
  void expect_to_go_on_without_one(const Words& starter) {
    Process all(starter + command(run_words("a", kEndlessRun)));
    wait_until_training(all);
    ::kill(nodes()["member.2"].pid, SIGKILL);
    ASSERT_TRUE(wait_until_said(all, "going on without member.2")) << log();
    wait_until_training(all, steps() + 40);
    ::kill(head(), SIGTERM);
    all.wait();
    expect_goes_on();
  }
};

TEST_F(AllocationRun, TasksOfAStepFindEachOtherInAnyOrderAndTrainAsOneProcess) {
  const Words twelve = until_iteration(12);
  std::vector<std::unique_ptr<Process>> tasks;
  for (const int rank : {2, 0, 1}) {
    tasks.push_back(std::make_unique<Process>(task(rank, 3, twelve)));
  }
  for (const auto& each : tasks) {
    const ProcessEnd end = each->wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
  }
  EXPECT_EQ(hash_of_run(), hash_of_alone(twelve));
  EXPECT_EQ(nodes().size(), 4U) << "the head and three members";
  EXPECT_THAT(log(), HasSubstr("waiting for the other processes of Slurm step 17.0"));
}

TEST_F(AllocationRun, OneThatIsKilledCostsNeitherStepNorBit) {
  Process first(task(0, 3, kEndlessRun));
  Process second(task(1, 3, kEndlessRun)), third(task(2, 3, kEndlessRun));
  wait_until_training(first);
  third.send(SIGKILL);
  ASSERT_TRUE(wait_until_said(first, "going on without member.2")) << log();
  wait_until_training(first, steps() + 40);
  stop_and_expect_whole(first);
  EXPECT_EQ(second.wait().exit_code, 0);
}

TEST_F(AllocationRun, RanksMeetAtTheMastersAddress) {
  const std::string port = fmt::format("MASTER_PORT={}", free_port());
  expect_pair_to_train([&](int rank) {
    return std::vector<std::string>{fmt::format("RANK={}", rank), "WORLD_SIZE=2",
                                    "MASTER_ADDR=127.0.0.1", port};
  });
}

TEST_F(AllocationRun, TasksOfTensorFlowMeetAtTheFirstOnesAddress) {
  const std::uint16_t port = free_port();
  expect_pair_to_train([&](int rank) {
    return std::vector<std::string>{
        fmt::format(R"(TF_CONFIG={{"cluster":{{"worker":["127.0.0.1:{}","127.0.0.1:1"]}},)"
                    R"("task":{{"type":"worker","index":{}}}}})",
                    port, rank)};
  });
}

TEST_F(AllocationRun, GoesOnInAnAllocationAndAlone) {
  const auto train = [&](const Words& more, const Words& resumed) {
    std::vector<std::unique_ptr<Process>> tasks;
    for (const int rank : {0, 1}) {
      Words words = task(rank, 2, more);
      if (!resumed.empty()) words = Words(words.begin(), words.begin() + 5) + command(resumed);
      tasks.push_back(std::make_unique<Process>(words));
    }
    for (const auto& each : tasks) {
      const ProcessEnd end = each->wait();
      EXPECT_EQ(end.exit_code, 0) << end.err;
    }
  };
  train(until_iteration(4), {});
  train({}, Words{"run", "--resume", path("a")} + until_iteration(8));
  EXPECT_EQ(hash_of_run(), hash_of("eight", until_iteration(8)));
  EXPECT_EQ(resumed("a", until_iteration(12))["state_hash"].text(),
            hash_of_alone(until_iteration(12)));
}

TEST_F(AllocationRun, WithWorkersIsAlone) {
  const Words twelve = until_iteration(12);
  for (const char* workers : {"0", "2"}) {
    std::filesystem::remove_all(path("a"));
    const ProcessEnd end = Process(task(1, 2, twelve + Words{"--workers", workers})).wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    EXPECT_EQ(hash_of_run(), hash_of_alone(twelve)) << workers;
    std::filesystem::remove_all(path("alone"));
  }
}

TEST_F(AllocationRun, WordsThatMeanOtherMembersAreRefused) {
  expect_refused(
      Process(task(1, 2, {"--set", "cluster.hosts=[{address: localhost, workers: 2}]"})).wait(), 2,
      {"one of the 2 processes of Slurm step 17.0", "cluster.hosts names others"});
  expect_refused(Process(task(2, 2, {})).wait(), 2,
                 {"SLURM_PROCID is 2 and SLURM_STEP_NUM_TASKS is 2"});
  EXPECT_FALSE(std::filesystem::exists(path("a")));
}

// MPI and Slurm, where they are installed.
class StartedRun : public AllocationRun {
 protected:
  static bool is_missing(const std::string& program) { return !std::filesystem::exists(program); }
};

const std::string kOpenMpi = "/usr/bin/mpirun.openmpi", kMpich = "/usr/bin/mpiexec.hydra";
const Words kInAJob{"/usr/bin/salloc", "--quiet", "-N", "3", "-n", "3"};

TEST_F(StartedRun, ByOpenMpi) {
  if (is_missing(kOpenMpi)) GTEST_SKIP() << kOpenMpi << " is not installed";
  expect_to_train_as_one_process({kOpenMpi, "--allow-run-as-root", "--oversubscribe", "-n", "3"});
}

TEST_F(StartedRun, ByOpenMpiGoesOnWithoutOne) {
  if (is_missing(kOpenMpi)) GTEST_SKIP() << kOpenMpi << " is not installed";
  expect_to_go_on_without_one(
      {kOpenMpi, "--allow-run-as-root", "--oversubscribe", "--enable-recovery", "-n", "3"});
}

TEST_F(StartedRun, ByMpich) {
  if (is_missing(kMpich)) GTEST_SKIP() << kMpich << " is not installed";
  expect_to_train_as_one_process({kMpich, "-n", "3"});
}

// Slurm with four nodes, all on this machine.
class SlurmRun : public StartedRun {
 protected:
  void SetUp() override {
    for (const char* part :
         {"/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/bin/srun", "/usr/sbin/munged"}) {
      if (is_missing(part)) GTEST_SKIP() << part << " is not installed";
    }
    // Its daemons are no processes of the run.
    const ProcessEnd up =
        Process({"/usr/bin/env", "-u", kMark, TROUPE_SLURM_CLUSTER, "up", path("slurm")}).wait();
    ASSERT_EQ(up.exit_code, 0) << up.err;
    ::setenv("SLURM_CONF", path("slurm/slurm.conf").c_str(), 1);
  }
  void TearDown() override {
    StartedRun::TearDown();
    ::unsetenv("SLURM_CONF");
    EXPECT_EQ(Process({TROUPE_SLURM_CLUSTER, "down", path("slurm")}).wait().exit_code, 0);
  }
};

TEST_F(SlurmRun, TasksOfAStepTrainAsOneProcess) {
  expect_to_train_as_one_process({"/usr/bin/srun", "-N", "3", "-n", "3"});
}

TEST_F(SlurmRun, StepGoesOnWithoutATaskThatIsKilled) {
  expect_to_go_on_without_one(
      {"/usr/bin/srun", "-N", "3", "-n", "3", "--no-kill", "--kill-on-bad-exit=0"});
}

// These take their nodes from the job, and start processes there by srun.
TEST_F(SlurmRun, OpenMpiInAJobTrainsAsOneProcess) {
  if (is_missing(kOpenMpi)) GTEST_SKIP() << kOpenMpi << " is not installed";
  expect_to_train_as_one_process(kInAJob + Words{kOpenMpi, "--allow-run-as-root", "-n", "3"});
}

TEST_F(SlurmRun, OpenMpiInAJobGoesOnWithoutOne) {
  if (is_missing(kOpenMpi)) GTEST_SKIP() << kOpenMpi << " is not installed";
  expect_to_go_on_without_one(
      kInAJob + Words{kOpenMpi, "--allow-run-as-root", "--enable-recovery", "-n", "3"});
}

TEST_F(SlurmRun, MpichInAJobTrainsAsOneProcess) {
  if (is_missing(kMpich)) GTEST_SKIP() << kMpich << " is not installed";
  expect_to_train_as_one_process(kInAJob + Words{kMpich, "-n", "3"});
}

// The script that comes with the program, twice: the second job goes on with the run of the first,
// as one that was requeued does.
TEST_F(SlurmRun, BatchScriptTrainsAndGoesOn) {
  const auto submit = [&](std::uint64_t iterations) {
    const Words script{
        "/usr/bin/sbatch",
        "--wait",
        "-N",
        "3",
        "-n",
        "3",
        "-o",
        path("job-%j.log"),
        "--export=ALL,PATH=" + std::filesystem::path(TROUPE_BINARY).parent_path().string() +
            ":/usr/bin:/bin",
        std::string(TROUPE_SOURCE_DIR) + "/config/launch/troupe.sbatch"};
    const ProcessEnd end =
        Process(script + Words{path("toy.yaml"), "--out", path("a")} + until_iteration(iterations))
            .wait();
    EXPECT_EQ(end.exit_code, 0) << end.err << read_text(path("job-1.log"));
  };
  submit(4);
  EXPECT_EQ(hash_of_run(), hash_of("four", until_iteration(4)));
  submit(8);
  EXPECT_EQ(hash_of_run(), hash_of("eight", until_iteration(8)));
}

}  // namespace
}  // namespace troupe
