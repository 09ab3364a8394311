#include "launch/run/run_pools.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "launch/meeting/key_folder.h"
#include "runtime/base/clock.h"

namespace troupe::launch {

using runtime::Result;

namespace {

// A node may wait for its machine, and then asks once.
constexpr auto kTokenLives = std::chrono::hours(24);

}  // namespace

Result<RunPools> RunPools::open(const std::string& path, JoinPlan plan,
                                const config::ClusterSection& cluster) {
  ASSIGN_OR_RETURN(PoolJournal journal, PoolJournal::open(path));
  RunPools made(std::move(journal), cluster.keys);
  plan.run = made.journal_.history().run;
  for (const config::PoolSection& section : cluster.pools) {
    ASSIGN_OR_RETURN(auto launcher, make_launcher(section, plan));
    made.pools_.push_back({{section.name, section.nodes, section.most, section.starts_in},
                           section.workers,
                           std::move(launcher)});
  }
  for (const actors::PoolNode& node : made.journal_.history().nodes) {
    const bool has_pool = std::ranges::any_of(
        cluster.pools, [&](const auto& section) { return section.name == node.pool; });
    if (has_pool || node.state == actors::PoolNodeState::kGone) continue;
    return runtime::Error{
        runtime::ErrorKind::kUsage,
        fmt::format("{} of pool {} may still be there, and the topology has no such pool any more; "
                    "stop it with the topology that has: troupe pools DIR --stop",
                    node.name, node.pool)};
  }
  return made;
}

actors::ProvisionerOptions RunPools::options(const MembershipFile& membership,
                                             runtime::Disk& disk) {
  actors::ProvisionerOptions options;
  options.pools = pools_;
  for (const actors::PoolNode& node : journal_.history().nodes) {
    if (node.state != actors::PoolNodeState::kGone) options.adopted.push_back(node);
  }
  options.wanted = journal_.history().wanted;
  options.note_node = [this](const actors::PoolNode& node) { return journal_.add(node); };
  options.note_wanted = [this](const std::string& pool, std::uint32_t nodes) {
    return journal_.add_wanted(pool, nodes);
  };
  options.token = [this, &disk]() -> Result<std::string> {
    if (!keys_) return std::string();
    const auto now = std::chrono::floor<std::chrono::seconds>(runtime::wall_now());
    return make_join_token(*keys_, now, now + kTokenLives, disk);
  };
  options.launched_on = [run = journal_.history().run, &membership](const std::string& member) {
    return launched_node(run, membership.launched(member));
  };
  return options;
}

}  // namespace troupe::launch
