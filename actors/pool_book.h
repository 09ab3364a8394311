#pragma once

// The book of nodes that a run has asked for: how many each pool shall have, what is known of every
// one, and what is to be done next. Nothing here starts, asks or waits.
//
// A node is forgotten only when its launcher does not list it any more, however it was asked for or
// told to stop. No pool ever has more than its most, those included that are on their way out.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/booked_pool.h"
#include "actors/launcher.h"
#include "actors/pool_node.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

namespace troupe::actors {

// One thread.
class PoolBook {
 public:
  explicit PoolBook(const std::vector<PoolLimits>& pools);

  // The head before this one knew it. Nodes that are gone keep their names. A member of a node
  // that ran has to come back first.
  void adopt(const PoolNode& node, runtime::TimePoint now);

  // How many nodes a pool shall have. kUsage: there is no such pool, or it has not so many.
  runtime::Result<void> want(const std::string& pool, std::uint32_t nodes);
  runtime::Result<std::uint32_t> wanted(const std::string& pool) const;
  // Nodes of it that are neither gone nor on their way out.
  std::uint32_t present(const std::string& pool) const { return pools_.at(pool).present(); }
  // Nothing is asked for any more.
  void close() { closed_ = true; }
  // The run is over: the book is closed, and what is left is stopped.
  void end(runtime::TimePoint now);

  // A launcher says so. `id`: under which it will look for the node; "": not known.
  void set_id(const std::string& node, const std::string& id);
  void started(const std::string& node, const std::string& id, runtime::TimePoint now);
  // As Launcher::start() fails.
  void start_failed(const std::string& node, const runtime::Error& why, runtime::TimePoint now);
  void stopped(const std::string& node, runtime::TimePoint now);
  // Nodes beside those of the book are stopped, as they may have been started twice.
  void listed(const std::string& pool, const std::vector<ListedNode>& nodes,
              runtime::TimePoint now);

  // A member that was started on a node has come, trains, or is gone.
  void member_came(const std::string& node, const std::string& member, runtime::TimePoint now);
  void member_trains(const std::string& member, runtime::TimePoint now);
  void member_gone(const std::string& member, runtime::TimePoint now);
  // It cannot leave: its node stays, and is wanted. Returns the node's pool; "": it is of none.
  std::string member_kept(const std::string& member, runtime::TimePoint now);
  // It cannot leave yet, and is asked again.
  void ask_member_again(const std::string& member);

  // The next things to do, in this order. Those are counted as done. Where nothing else is to be
  // done a node is asked for, one at a time, and pools take turns.
  std::vector<PoolOrder> next(runtime::TimePoint now);
  // Nodes that are not as they were when this was called last.
  std::vector<PoolNode> take_changed();
  // Those of each pool together, in the order in which they were asked for.
  std::vector<PoolNode> nodes() const;
  // Nothing is left that could cost anything.
  bool all_gone() const;
  // Whether a pool has nodes that are not gone, and whether one of them does not run with members.
  bool has_any(const std::string& pool) const { return pools_.at(pool).has_any(); }
  bool changes(const std::string& pool) const { return pools_.at(pool).changes(); }

 private:
  struct Found {
    BookedPool* pool = nullptr;  // null: there is no such node
    BookedNode* node = nullptr;
  };
  Found find(const std::string& node);
  Found with_member(const std::string& member);

  std::map<std::string, BookedPool> pools_;
  std::string asked_last_;  // the pool
  bool closed_ = false;
  bool ended_ = false;
};

}  // namespace troupe::actors
