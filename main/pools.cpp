#include <algorithm>
#include <filesystem>
#include <iostream>
#include <span>
#include <thread>

#include <fmt/format.h>

#include "config/topology_file.h"
#include "launch/folder/run_folder.h"
#include "launch/pools/launchers.h"
#include "launch/pools/pool_journal.h"
#include "launch/run/run_pools.h"
#include "main/command_line.h"
#include "main/common_options.h"
#include "runtime/base/clock.h"
#include "runtime/base/json_text.h"

namespace troupe {
namespace {

using actors::PoolNode;
using actors::PoolNodeState;
using runtime::Result;

constexpr auto kLookAgain = std::chrono::seconds(1);
constexpr auto kWithin = std::chrono::minutes(1);

std::string object_of(const PoolNode& node, const std::string& since) {
  using runtime::json_string;
  return fmt::format(
      R"({{"name":{},"pool":{},"state":{},"since":{},"id":{},"where":{},"cause":{}}})",
      json_string(node.name), json_string(node.pool), json_string(actors::word_of(node.state)),
      json_string(since), json_string(node.id), json_string(node.where), json_string(node.cause));
}

void print(const launch::PoolHistory& history, bool json) {
  std::string objects;
  for (const PoolNode& node : history.nodes) {
    const std::string& since = history.since.at(node.name);
    if (json) {
      if (!objects.empty()) objects += ',';
      objects += object_of(node, since);
    } else {
      std::cout << fmt::format("{:<16} {:<9} since {}  {:<12} {} {}\n", node.name,
                               actors::word_of(node.state), since, node.id, node.where, node.cause);
    }
  }
  if (json)
    answer_object(
        fmt::format(R"({{"run":{},"nodes":[{}]}})", runtime::json_string(history.run), objects));
  if (!json && history.nodes.empty()) std::cerr << "this run has asked for no nodes\n";
}

// Stops what the launcher lists of the run, whether the journal knows it or not.
Result<void> stop_pool(config::PoolSection pool, const launch::PoolHistory& history,
                       launch::PoolJournal& journal) {
  launch::JoinPlan plan;
  plan.run = history.run;
  pool.pod.reset();  // no node is started, so that it may be missing
  ASSIGN_OR_RETURN(const auto launcher, launch::make_launcher(pool, plan));
  std::vector<PoolNode> left;
  for (const PoolNode& node : history.nodes) {
    if (node.pool != pool.name || node.state == PoolNodeState::kGone) continue;
    left.push_back(node);
    launcher->adopt(node.name, node.id);
  }
  std::vector<actors::ListedNode> there;
  if (launcher->lists()) {
    ASSIGN_OR_RETURN(there, launcher->list());
  } else {
    for (const PoolNode& node : left) there.push_back({node.name, node.id});
  }
  for (auto rest = std::span(there); !rest.empty();) {
    const auto some = rest.first(std::min(rest.size(), actors::kMostStopsAtOnce));
    const auto told = launcher->stop_all({some.begin(), some.end()});
    for (std::size_t i = 0; i < some.size(); ++i) {
      std::cerr << (told[i].ok() ? fmt::format("{} ({}) is told to end\n", some[i].name, some[i].id)
                                 : told[i].error().message + "\n");
    }
    rest = rest.subspan(some.size());
  }
  const auto until = runtime::steady_now() + kWithin;
  while (launcher->lists() && !there.empty()) {
    if (runtime::steady_now() > until) {
      return runtime::Error{
          runtime::ErrorKind::kLostPeers,
          fmt::format("{} of pool {} is still there", there.front().name, pool.name)};
    }
    std::this_thread::sleep_for(kLookAgain);
    ASSIGN_OR_RETURN(there, launcher->list());
  }
  for (PoolNode& node : left) {
    node.state = PoolNodeState::kGone;
    node.cause = "troupe pools --stop";
    RETURN_IF_ERROR(journal.add(node));
  }
  return {};
}

// The folder is locked while the run goes on.
Result<void> stop_all(const std::string& folder) {
  runtime::FileDisk disk;
  ASSIGN_OR_RETURN(const launch::RunFolder locked, launch::RunFolder::reopen(folder, disk));
  ASSIGN_OR_RETURN(const config::LoadedTopology loaded,
                   config::load_topology(folder + "/topology.yaml"));
  const std::string path = fmt::format("{}/{}", folder, launch::PoolJournal::kName);
  if (!std::filesystem::exists(path)) return {};
  ASSIGN_OR_RETURN(launch::PoolJournal journal, launch::PoolJournal::open(path));
  RETURN_IF_ERROR(launch::check_nodes_left(path, 1, loaded.topology.cluster));
  // One pool that fails keeps no other from being stopped.
  Result<void> all;
  for (const config::PoolSection& pool : loaded.topology.cluster.pools) {
    const auto stopped = stop_pool(pool, journal.history(), journal);
    if (!stopped.ok() && all.ok()) all = stopped;
  }
  return all;
}

int pools(const CommandLine& line) {
  const auto folder = line.get<std::string>("dir");
  if (line.get<bool>("stop")) {
    const auto stopped = stop_all(folder);
    if (!stopped.ok()) return report(stopped.error());
  }
  print(launch::read_pool_journal(fmt::format("{}/{}", folder, launch::PoolJournal::kName)),
        line.get<bool>("json"));
  return 0;
}

}  // namespace

Command pools_verb() {
  return {.name = "pools",
          .summary = "the nodes that a run has asked its pools for",
          .about =
              "Prints every node that the run of this folder has asked for, and what became of it. "
              "With --stop it stops those that are left after a run whose head is gone for good.",
          .example = "troupe pools runs/first",
          .places = {{.name = "dir", .asked = "which run's folder?", .takes = Takes::kFolder}},
          .options = {{.name = "stop", .about = "ends all nodes that are left, and waits for it"},
                      json_option()},
          .carry_out = pools};
}

}  // namespace troupe
