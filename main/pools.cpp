#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

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
// A pod of Kubernetes may take a minute to leave; a run waits as long at its own end.
constexpr auto kWithin = std::chrono::minutes(2);

std::string object_of(const PoolNode& node, const std::string& since) {
  using runtime::json_string;
  return fmt::format(
      R"({{"name":{},"pool":{},"state":{},"since":{},"id":{},"where":{},"cause":{}}})",
      json_string(node.name), json_string(node.pool), json_string(actors::word_of(node.state)),
      json_string(since), json_string(node.id), json_string(node.where), json_string(node.cause));
}

void print(const launch::PoolHistory& history, bool json, const Result<void>& stopped) {
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
  if (json) {
    answer(fmt::format(R"("run":{},"nodes":[{}])", runtime::json_string(history.run), objects),
           stopped.ok() ? "" : stopped.error().message,
           stopped.ok() ? 0 : runtime::exit_code(stopped.error().kind));
  }
  if (!json && history.nodes.empty()) std::cerr << "this run has asked for no nodes\n";
}

// Nodes of a pool that are there, and why some could not be told to end.
struct LeftNodes {
  std::vector<actors::ListedNode> there;
  std::map<std::string, std::string> faults;  // by name
};

void tell_to_end(actors::Launcher& launcher, LeftNodes& left) {
  for (auto rest = std::span(left.there); !rest.empty();) {
    const auto some = rest.first(std::min(rest.size(), actors::kMostStopsAtOnce));
    const auto told = launcher.stop_all({some.begin(), some.end()});
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (!told[i].ok()) left.faults[some[i].name] = told[i].error().message;
      if (told[i].ok()) {
        std::cerr << fmt::format("{} ({}) is told to end\n", some[i].name, some[i].id);
      }
    }
    rest = rest.subspan(some.size());
  }
}

// Those that have not ended: as the launcher listed them last, or else those that it could not
// stop. An Error: it could not list them at the end.
Result<void> wait_for_their_end(actors::Launcher& launcher, LeftNodes& left) {
  if (!launcher.lists()) {
    std::erase_if(left.there, [&](const auto& node) { return !left.faults.contains(node.name); });
    return {};
  }
  Result<void> asked;
  const auto until = runtime::steady_now() + kWithin;
  while (!left.there.empty() && runtime::steady_now() <= until) {
    std::this_thread::sleep_for(kLookAgain);
    auto listed = launcher.list();
    asked = listed.ok() ? Result<void>{} : Result<void>{listed.error()};
    if (listed.ok()) left.there = std::move(*listed);
  }
  return asked;
}

runtime::Error error_of(const LeftNodes& left, const std::string& pool) {
  std::vector<std::string> words;
  for (const actors::ListedNode& node : left.there) {
    const auto fault = left.faults.find(node.name);
    words.push_back(
        fmt::format("{} of pool {} is still there{}{}", node.name, pool,
                    fault == left.faults.end() ? "" : ", and could not be told to end: ",
                    fault == left.faults.end() ? "" : fault->second));
  }
  return {runtime::ErrorKind::kLostPeers, fmt::format("{}", fmt::join(words, "; "))};
}

// Stops what the launcher lists of the run, whether the journal knows it or not. A node that is
// still there then stays in the journal.
Result<void> stop_pool(config::PoolSection pool, const launch::PoolHistory& history,
                       launch::PoolJournal& journal) {
  launch::JoinPlan plan;
  plan.run = history.run;
  pool.pod.reset();  // no node is started, so that it may be missing
  ASSIGN_OR_RETURN(const auto launcher, launch::make_launcher(pool, plan));
  std::vector<PoolNode> known = launch::nodes_left(history);
  std::erase_if(known, [&](const PoolNode& node) { return node.pool != pool.name; });
  LeftNodes left;
  for (const PoolNode& node : known) {
    launcher->adopt(node.name, node.id);
    if (!launcher->lists()) left.there.push_back({node.name, node.id});
  }
  if (launcher->lists()) {
    ASSIGN_OR_RETURN(left.there, launcher->list());
  }
  tell_to_end(*launcher, left);
  const auto waited = wait_for_their_end(*launcher, left);
  for (PoolNode& node : known) {
    const bool is_there =
        std::ranges::any_of(left.there, [&](const auto& each) { return each.name == node.name; });
    if (is_there) continue;
    node.state = PoolNodeState::kGone;
    node.cause = "troupe pools --stop";
    RETURN_IF_ERROR(journal.add(node));
  }
  if (!waited.ok()) return waited;
  if (!left.there.empty()) return error_of(left, pool.name);
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
    if (stopped.ok()) continue;
    const std::string before = all.ok() ? "" : all.error().message + "; ";
    all = runtime::Error{stopped.error().kind, before + stopped.error().message};
  }
  return all;
}

int pools(const CommandLine& line) {
  const auto folder = line.get<std::string>("dir");
  if (const auto can = launch::RunFolder::check(folder); !can.ok()) return report(can.error());
  // People see what is left all the same.
  const Result<void> stopped = line.get<bool>("stop") ? stop_all(folder) : Result<void>{};
  print(launch::read_pool_journal(fmt::format("{}/{}", folder, launch::PoolJournal::kName)),
        line.get<bool>("json"), stopped);
  return stopped.ok() ? 0 : report(stopped.error());
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
