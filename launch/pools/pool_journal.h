#pragma once

// RUN/pools.jsonl: what a run has asked its pools for, before it is asked, and what became of it.
// One JSON object per line, "kind" first:
//
//   run     the name by which this run's nodes are known to launchers
//   wanted  how many nodes a pool shall have, as of `troupe burst`
//   node    a node's state, as it changes, for how long it was paid until then, what it has cost,
//           and its price then
//   work    iterations that workers of each pool ("": of none) have contributed, and how long the
//           run was thought to take and to cost at first
//
// The next head goes on from it, and `troupe pools` tells of it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/cost_book.h"
#include "actors/pool_node.h"
#include "actors/treasurer.h"
#include "launch/folder/line_file.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

namespace troupe::launch {

struct PoolHistory {
  std::string run;            // "": the file has none
  runtime::WallTime began{};  // when it got its name
  std::map<std::string, double> contributed;
  std::optional<actors::FirstForecast> first_forecast;
  std::map<std::string, std::uint32_t> wanted;
  std::vector<actors::PoolNode> nodes;       // in the order in which they were asked for
  std::map<std::string, std::string> since;  // of a node's state: the time of day
};

// Reads a file that another process may write. One that is missing is empty.
PoolHistory read_pool_journal(const std::string& path);
// Those that are not gone.
std::vector<actors::PoolNode> nodes_left(const PoolHistory& history);
// All nodes, as the next head begins with them. Where it `returns` to its run, members come back to
// it. To a run that is resumed they do not, so nodes that had some are to be stopped.
std::vector<actors::PoolNode> nodes_to_adopt(const PoolHistory& history, bool returns);
// By pool, as of the newest line: for how long its nodes were paid, how long they took to start,
// and how often they were lost. Prices are left out.
std::map<std::string, actors::PoolAccount> read_pool_accounts(const std::string& path);

// Any thread.
class PoolJournal {
 public:
  static constexpr const char* kName = "pools.jsonl";

  // Goes on with what is there. Draws the run's name, where there is none. kData: see LineFile.
  static runtime::Result<PoolJournal> open(const std::string& path);

  // As it was when the file was opened, and the run's name. Nodes that were not gone were paid
  // until then.
  const PoolHistory& history() const { return history_; }
  runtime::Result<void> add(const actors::PoolNode& node);
  runtime::Result<void> add_wanted(const std::string& pool, std::uint32_t nodes);
  runtime::Result<void> add_work(const std::map<std::string, double>& contributed,
                                 const std::optional<actors::FirstForecast>& forecast);
  runtime::Result<void> put_back() const { return file_.put_back(); }

 private:
  PoolJournal(LineFile file, PoolHistory history)
      : file_(std::move(file)), history_(std::move(history)) {}

  LineFile file_;
  PoolHistory history_;
};

}  // namespace troupe::launch
