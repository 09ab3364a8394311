#pragma once

// The tools that a run's pools are made of: starts, stops, lists and prices. What they answer is in
// the PoolBook then, and what they complain about in the log, once. The Provisioner's.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/launcher.h"
#include "actors/pool_book.h"
#include "runtime/actor.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

namespace troupe::actors {

// One thread. Each call takes as long as its tool.
class PoolTools {
 public:
  struct Pool {
    PoolLimits limits;
    std::uint32_t workers = 1;  // of a node
    std::shared_ptr<Launcher> launcher;
    // The price of a node for an hour now; null: that of TreasurerOptions. May take seconds.
    std::function<runtime::Result<double>()> price{};
  };

  explicit PoolTools(std::vector<Pool> pools) : pools_(std::move(pools)) {}

  const std::vector<Pool>& pools() const { return pools_; }
  // Those of the pools, with what their launchers can tell.
  std::vector<PoolLimits> limits() const;

  // A node that an earlier head has asked for, and that is not gone.
  void adopt(const PoolNode& node) { pool(node.pool).launcher->adopt(node.name, node.id); }
  // Lists the nodes of the pools whose turn it is: now and then, and often where some are on their
  // way, or `is_urgent`.
  void look(runtime::Context& context, PoolBook& book, bool is_urgent);
  // Before it is asked for: see Launcher::id_for().
  std::string id_for(const AskForNode& asked) {
    return pool(asked.pool).launcher->id_for(asked.node);
  }
  // `token`: NodeOrder's, or why there is none.
  void start(runtime::Context& context, PoolBook& book, const AskForNode& asked,
             runtime::Result<std::string> token);
  void stop(runtime::Context& context, PoolBook& book, const std::string& of,
            const std::vector<ListedNode>& nodes);
  std::string last_words(const PoolNode& node) {
    return pool(node.pool).launcher->last_words(node.name);
  }

  // By pool: prices as their commands tell them, where it is their turn.
  std::map<std::string, double> ask_prices(runtime::Context& context);
  // Why the pool's price was not told when it was asked for last; "": it was.
  std::string price_fault(const std::string& of) const;

 private:
  Pool& pool(const std::string& name);
  void warn_once(runtime::Context& context, const std::string& of, const std::string& why);

  std::vector<Pool> pools_;
  std::map<std::string, runtime::TimePoint> looked_at_;  // from when on its pause counts,
  std::map<std::string, runtime::TimePoint> priced_at_;  // when its price was asked
  std::map<std::string, std::string> warned_;            // of a list or a price: what was said last
};

}  // namespace troupe::actors
