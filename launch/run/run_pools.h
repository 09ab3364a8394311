#pragma once

// The pools of a run, on its head: their journal, their launchers, and what the Provisioner is told
// of them.

#include <cstdint>
#include <optional>
#include <string>

#include "actors/provisioner.h"
#include "config/topology.h"
#include "launch/folder/membership_file.h"
#include "launch/pools/launchers.h"
#include "launch/pools/pool_journal.h"
#include "launch/run/training_setup.h"
#include "runtime/base/disk.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// kUsage: nodes of a pool that the run does not have are left of an earlier session. `path` of the
// journal. `members`: 0 for a run in one process, which has no pools.
runtime::Result<void> check_nodes_left(const std::string& path, std::uint32_t members,
                                       const config::ClusterSection& cluster);

pipeline::BurstLimits limits_of(const config::BurstSection& burst);
// How many nodes the pool may have; of ssh no more than hosts.
std::uint32_t most_nodes(const config::PoolSection& pool);

// For people: these nodes of the run in the folder are still there, and may cost money; and how
// they are stopped. "": there are none.
std::string left_text(const std::vector<actors::PoolNode>& nodes, const std::string& folder);

class RunPools {
 public:
  // A folder beside that of the run. Where it is there, runs beside each other take different hosts
  // of ssh. A study makes it.
  static constexpr const char* kHosts = "hosts";

  // `path` of the journal, `plan` without the run's name and the program. kUsage: a pool's commands
  // cannot be understood.
  static runtime::Result<RunPools> open(const std::string& path, JoinPlan plan,
                                        const config::ClusterSection& cluster);

  // The options of a Provisioner, which this outlives, as do `membership` and `disk`. `returns`: of
  // a head in the place of a lost one, which keeps to what people have asked that one for.
  // `first_iteration`: that is made.
  actors::ProvisionerOptions options(const TrainingSetup& setup, std::uint64_t first_iteration,
                                     const MembershipFile& membership, bool returns,
                                     runtime::Disk& disk);
  runtime::Result<void> put_back() const { return journal_.put_back(); }
  // By what the journal says now.
  std::vector<actors::PoolNode> nodes_left() const {
    return launch::nodes_left(read_pool_journal(path_));
  }

 private:
  RunPools(std::string path, PoolJournal journal, std::optional<std::string> keys)
      : path_(std::move(path)), journal_(std::move(journal)), keys_(std::move(keys)) {}

  bool has_pool(const std::string& name) const;
  actors::TreasurerOptions treasurer(const TrainingSetup& setup,
                                     std::uint64_t first_iteration) const;

  std::string path_;
  PoolJournal journal_;
  std::optional<std::string> keys_;
  std::vector<actors::PoolTools::Pool> pools_;
};

}  // namespace troupe::launch
