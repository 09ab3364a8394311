#include "launch/run/run_pools.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launch/meeting/key_folder.h"
#include "launch/processes/shell_word.h"
#include "runtime/base/clock.h"

namespace troupe::launch {

using runtime::Result;

namespace {

// A node may wait for its machine, and then asks once.
constexpr auto kTokenLives = std::chrono::hours(24);
constexpr std::size_t kMostNamed = 16;

}  // namespace

pipeline::BurstLimits limits_of(const config::BurstSection& burst) {
  pipeline::BurstLimits limits;
  if (burst.finish_within) limits.finish_within = runtime::seconds(*burst.finish_within);
  limits.budget = burst.budget;
  limits.decide_every = runtime::seconds(burst.decide_every);
  return limits;
}

std::uint32_t most_nodes(const config::PoolSection& pool) {
  const auto hosts = static_cast<std::uint32_t>(pool.hosts.size());
  return hosts > 0 ? std::min(pool.most, hosts) : pool.most;
}

Result<RunPools> RunPools::open(const std::string& path, JoinPlan plan,
                                const config::ClusterSection& cluster) {
  ASSIGN_OR_RETURN(PoolJournal journal, PoolJournal::open(path));
  RunPools made(path, std::move(journal), cluster.keys);
  plan.run = made.journal_.history().run;
  plan.program = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto file = std::filesystem::absolute(path);
  plan.journal = file.string();
  const auto hosts = file.parent_path().parent_path() / kHosts;
  if (std::filesystem::is_directory(hosts)) plan.hosts = hosts.string();
  for (const config::PoolSection& section : cluster.pools) {
    ASSIGN_OR_RETURN(auto launcher, make_launcher(section, plan));
    ASSIGN_OR_RETURN(auto price, make_price(section));
    made.pools_.push_back({{section.name, section.nodes, most_nodes(section), section.starts_in},
                           section.workers,
                           std::move(launcher),
                           std::move(price)});
  }
  return made;
}

Result<void> check_nodes_left(const std::string& path, std::uint32_t members,
                              const config::ClusterSection& cluster) {
  for (const actors::PoolNode& node : nodes_left(read_pool_journal(path))) {
    const auto pool = std::ranges::find(cluster.pools, node.pool, &config::PoolSection::name);
    if (members > 0 && pool != cluster.pools.end()) continue;
    return runtime::Error{
        runtime::ErrorKind::kUsage,
        fmt::format(
            "{} of pool {} may still be there, and this run has no such pool any more; stop "
            "it first: troupe pools DIR --stop",
            node.name, node.pool)};
  }
  return {};
}

std::string left_text(const std::vector<actors::PoolNode>& nodes, const std::string& folder) {
  if (nodes.empty()) return "";
  std::vector<std::string> named;
  for (const actors::PoolNode& node : nodes) {
    if (named.size() == kMostNamed) break;
    named.push_back(actors::text_of(node));
  }
  if (nodes.size() > kMostNamed) named.push_back(fmt::format("{} more", nodes.size() - kMostNamed));
  return fmt::format(
      "still there, and may cost money: {}; end what is left with: troupe pools {} --stop",
      fmt::join(named, ", "), shell_word(folder));
}

bool RunPools::has_pool(const std::string& name) const {
  return std::ranges::any_of(pools_, [&](const auto& pool) { return pool.limits.name == name; });
}

actors::TreasurerOptions RunPools::treasurer(const TrainingSetup& setup,
                                             std::uint64_t first_iteration) const {
  const config::ClusterSection& cluster = setup.topology.cluster;
  actors::TreasurerOptions options;
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    options.pools.push_back(cluster.pools[i]);
    options.pools.back().most = pools_[i].limits.most;
  }
  if (cluster.burst) options.limits = limits_of(*cluster.burst);
  options.work = iteration_work(setup);
  options.made.steps_per_iteration = setup.options.schedule.size();
  options.made.iterations = setup.iterations;
  options.made.iterations_per_epoch = setup.options.iterations_per_epoch;
  options.made.replicas_per_member =
      static_cast<std::uint32_t>(setup.replica_weights.size()) / setup.size.slots;
  options.made.first_iteration = first_iteration;
  const PoolHistory& history = journal_.history();
  options.made.contributed = history.contributed;
  options.first_forecast = history.first_forecast;
  options.seconds_before = runtime::seconds(runtime::wall_now() - history.began);
  return options;
}

actors::ProvisionerOptions RunPools::options(const TrainingSetup& setup,
                                             std::uint64_t first_iteration,
                                             const MembershipFile& membership, bool returns,
                                             runtime::Disk& disk) {
  actors::ProvisionerOptions options;
  options.pools = pools_;
  options.treasurer = treasurer(setup, first_iteration);
  options.adopted = nodes_to_adopt(journal_.history(), returns);
  std::erase_if(options.adopted, [&](const auto& node) { return !has_pool(node.pool); });
  if (returns) options.wanted = journal_.history().wanted;
  options.note_node = [this](const actors::PoolNode& node) { return journal_.add(node); };
  options.note_wanted = [this](const std::string& pool, std::uint32_t nodes) {
    return journal_.add_wanted(pool, nodes);
  };
  options.note_work = [this](const auto& contributed, const auto& forecast) {
    return journal_.add_work(contributed, forecast);
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
