#include "launch/run/run_outlook.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "actors/treasurer.h"
#include "config/workers.h"
#include "launch/pools/launchers.h"
#include "launch/pools/pool_journal.h"
#include "launch/run/run_pools.h"
#include "launch/run/training_setup.h"

namespace troupe::launch {
namespace {

using config::PoolSection;
using runtime::Result;

constexpr double kMostDoubt = 0.9;
constexpr std::size_t kTelling = 4;  // iterations

// As far as the tenth of the iterations goes that was fastest, and that which was slowest. Few tell
// little.
double doubt_of(std::vector<double> iterations) {
  const double least = std::max(0.02, 0.5 / static_cast<double>(iterations.size()));
  std::ranges::sort(iterations);
  const std::size_t tenth = iterations.size() / 10;
  const double low = iterations[tenth], high = iterations[iterations.size() - 1 - tenth];
  return std::clamp((high - low) / (high + low), least, kMostDoubt);
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// How evenly members compute, as RingLine has it: half of what two thirds of the iterations lie
// within, so that a single long one does not count. No less than the model takes by itself.
double deviation_of(std::vector<double> iterations) {
  constexpr double kLeast = pipeline::RingLine{}.deviation;
  if (iterations.size() < kTelling) return kLeast;
  const double mean = mean_of(iterations);
  std::ranges::sort(iterations);
  const std::size_t sixth = iterations.size() / 6;
  const double width = iterations[iterations.size() - 1 - sixth] - iterations[sixth];
  return std::max(kLeast, 0.5 * width / mean);
}

// Nodes like this machine, for a topology without pools.
PoolSection nodes_like_here(const config::Topology& topology) {
  PoolSection pool;
  pool.name = "node";
  const auto options = config::options_between_members(topology);
  pool.most =
      std::min(config::kMostMembers, (options.all_parts() - 1) / topology.replica.count + 1);
  pool.price_per_node_hour = topology.monitor.price_per_node_hour;
  pool.starts_in = {};
  return pool;
}

// The time of an iteration that neither workers nor the model account for.
double unexplained(const MeasuredPace& pace, const pipeline::IterationWork& work,
                   const pipeline::RingLine& line) {
  const pipeline::Crew crew{pace.workers, 1.0 / pace.busy_seconds};
  const pipeline::IterationTime known = pipeline::iteration_time(work, line, {&crew, 1});
  return std::max(0.0, mean_of(pace.iterations) - pace.busy_seconds - known.summing -
                           pace.busy_seconds * known.waiting / known.computing);
}

using Accounts = std::map<std::string, actors::PoolAccount>;

// As a run that has not begun has it.
actors::PoolAccount account_of(const Accounts& accounts, const PoolSection& pool) {
  const auto found = accounts.find(pool.name);
  actors::PoolAccount account;
  if (found != accounts.end()) {
    account.paid = found->second.paid;
    account.started = found->second.started;
    account.start_seconds = found->second.start_seconds;
    account.losses = found->second.losses;
  }
  account.price = pool.price_per_node_hour;
  return account;
}

std::vector<std::string> assumptions_of(const std::vector<PoolSection>& pools,
                                        const Accounts& accounts, const MeasuredPace& pace,
                                        const pipeline::BurstFacts& facts, bool names_lines) {
  std::vector<std::string> all{
      fmt::format("members reach each other with {:.0f} Gbit/s, and {:.0f} us for a message",
                  facts.line.bytes_per_second * 8e-9, facts.line.message_seconds * 1e6)};
  if (names_lines) all.emplace_back("lines that cluster.bandwidth names are as fast as others");
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const PoolSection& pool = pools[i];
    if (!pace.pool_speeds.contains(pool.name)) {
      const std::string times = pool.speed == 1.0 ? "" : fmt::format("{:g} times ", pool.speed);
      all.push_back(
          fmt::format("a worker of {} is {}as fast as the one measured", pool.name, times));
    }
    const actors::PoolAccount account = account_of(accounts, pool);
    if (account.started == 0) {
      all.push_back(fmt::format("a node of {} starts in {}", pool.name,
                                pipeline::time_text(facts.pools[i].starts_in)));
    }
    if (pool.spot && account.losses == 0) {
      all.push_back(fmt::format("a node of {} is lost in ten hours", pool.name));
    }
    if (pool.price_per_node_hour == 0.0) {
      all.push_back(fmt::format("a node of {} costs nothing", pool.name));
    }
  }
  all.emplace_back("validation and checkpoints take no time");
  return all;
}

}  // namespace

Result<void> ask_prices(std::vector<PoolSection>& pools) {
  for (PoolSection& pool : pools) {
    ASSIGN_OR_RETURN(const auto price, make_price(pool));
    if (!price) continue;
    ASSIGN_OR_RETURN(pool.price_per_node_hour, price());
  }
  return {};
}

Result<RunOutlook> run_outlook(const config::LoadedTopology& loaded,
                               std::optional<std::uint32_t> workers, const MeasuredPace& pace,
                               const std::string& earlier) {
  std::vector<PoolSection> pools = loaded.topology.cluster.pools;
  const bool has_others = workers ? *workers > 0 : !loaded.topology.cluster.hosts.empty();
  const bool has_none = pools.empty() && !has_others;
  const std::uint32_t members = std::max(1U, config::workers_of(loaded.topology, workers));
  if (has_none) pools.push_back(nodes_like_here(loaded.topology));
  const RunSize size{members, members, 0};
  const auto micro_batches =
      config::options_between_members(config::scaled(loaded.topology, members)).all_parts();
  const std::uint64_t per_epoch =
      std::max<std::uint64_t>(1, pace.iterations_per_epoch * pace.micro_batches / micro_batches);
  ASSIGN_OR_RETURN(const TrainingSetup setup, set_up_training(loaded, size, {{}, per_epoch}));

  RunOutlook told;
  pipeline::BurstFacts facts;
  facts.iterations_left = static_cast<double>(setup.iterations);
  facts.work = iteration_work(setup);
  facts.line.deviation = deviation_of(pace.iterations);
  if (pace.ring_bytes_per_second > 0.0) {
    facts.line.member_bytes_per_second = pace.ring_bytes_per_second;
  }
  facts.unexplained = unexplained(pace, facts.work, facts.line);
  facts.unexplained_speed = pace.slowest();
  const std::uint32_t replicas = loaded.topology.replica.count;
  facts.others = {has_others ? members * replicas : 0, pace.speed};
  Accounts accounts;
  if (!earlier.empty()) {
    accounts = read_pool_accounts(fmt::format("{}/{}", earlier, PoolJournal::kName));
  }
  for (PoolSection& pool : pools) {
    pool.most = most_nodes(pool);
    const auto measured = pace.pool_speeds.find(pool.name);
    const double speed = measured == pace.pool_speeds.end() ? 0.0 : measured->second;
    facts.pools.push_back(offer_of(pool, account_of(accounts, pool), speed, pace.speed, replicas));
    facts.pools.back().wanted = pool.nodes;
    told.pools.push_back(pool.name);
  }
  told.doubt.pace = doubt_of(pace.iterations);
  const auto& burst = loaded.topology.cluster.burst;
  told.outlook =
      pipeline::outlook(facts, burst ? std::optional(limits_of(*burst)) : std::nullopt, told.doubt);
  told.iterations = setup.iterations;
  told.events_per_iteration = std::uint64_t{micro_batches} * setup.options.events_of_part();
  told.speed = pace.speed * setup.options.events_of_part();
  told.assumptions =
      assumptions_of(pools, accounts, pace, facts, !loaded.topology.cluster.bandwidth.empty());
  if (loaded.topology.train.scaling == config::Scaling::kWeak) {
    told.assumptions.push_back(
        fmt::format("an iteration has the micro-batches of {} worker{} (train.scaling: weak)",
                    members, members == 1 ? "" : "s"));
  }
  return told;
}

}  // namespace troupe::launch
