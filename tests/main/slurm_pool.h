#pragma once

// A run that gets nodes from Slurm; see slurm_cluster.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tests/main/pool_run.h"

namespace troupe {

// Slurm with four nodes, all on this machine; see allocation_test.cpp.
class SlurmPool : public PoolRun {
 protected:
  // A kind of slurm_cluster. Tests that take long are played by ./dev test --slow alone.
  explicit SlurmPool(std::string kind = "plain", bool takes_long = false)
      : kind_(std::move(kind)), takes_long_(takes_long) {}

  void SetUp() override {
    if (takes_long_ && !is_thorough()) GTEST_SKIP() << "it takes long: TROUPE_THOROUGH";
    for (const char* part : {"/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/sbin/munged"}) {
      if (!std::filesystem::exists(part)) GTEST_SKIP() << part << " is not installed";
    }
    const ProcessEnd up =
        Process({"/usr/bin/env", "-u", kMark, TROUPE_SLURM_CLUSTER, "up", path("slurm"), kind_})
            .wait();
    ASSERT_EQ(up.exit_code, 0) << up.err;
    ::setenv("SLURM_CONF", path("slurm/slurm.conf").c_str(), 1);
  }
  void TearDown() override {
    if (std::filesystem::exists(path("slurm/slurm.conf"))) {
      EXPECT_EQ(jobs(), "") << "no job of ours is left";
      ::unsetenv("SLURM_CONF");
      EXPECT_EQ(Process({TROUPE_SLURM_CLUSTER, "down", path("slurm"), kind_}).wait().exit_code, 0);
    }
    PoolRun::TearDown();
  }
  static std::string jobs() {
    return Process({"/usr/bin/squeue", "--noheader", "--format=%i %T %j"}).wait().out;
  }
  // The number of the job of a node.
  std::string job_of(const std::string& node) const {
    const std::string text = pools({"--json"});
    const std::string mark = "\"name\":\"" + node + "\"";
    const std::size_t id = text.find("\"id\":\"", text.find(mark)) + 6;
    return text.substr(id, text.find('"', id) - id);
  }
  Words slurm_pool(int nodes, const std::string& options = "[]",
                   const std::string& more = "") const {
    return listening() +
           Words{"--set", fmt::format("cluster.pools=[{{name: hpc, launcher: slurm, nodes: {}, "
                                      "most: 6, options: {}{}}}]",
                                      nodes, options, more)};
  }
  void slurm(const Words& words) const {
    const ProcessEnd end = Process(words).wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
  }

  const std::string kind_;
  const bool takes_long_;
};

}  // namespace troupe
