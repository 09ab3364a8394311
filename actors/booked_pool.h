#pragma once

// One pool in the PoolBook: its nodes, how many of them are wanted, and when others may be asked
// for. A pool whose nodes fail is asked again after a pause that doubles.

#include <algorithm>
#include <cstdint>
#include <list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/booked_node.h"
#include "actors/launcher.h"
#include "actors/pool_node.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

namespace troupe::actors {

struct PoolLimits {
  std::string name;
  std::uint32_t nodes = 0;  // wanted when the run begins
  std::uint32_t most = 1;
  // How long a node may take from its start to its first member.
  runtime::Duration starts_in = std::chrono::minutes(10);
  bool lists = true;  // Launcher::lists()
};

// An order to whoever carries out the book's decisions.
struct AskForNode {
  std::string pool, node;
};
struct StopNode {
  std::string pool, node, id;
};
struct LetMembersGo {
  std::string node;
  std::vector<std::string> members;
};
using PoolOrder = std::variant<AskForNode, StopNode, LetMembersGo>;

// One thread.
class BookedPool {
 public:
  explicit BookedPool(PoolLimits limits) : limits_(std::move(limits)), wanted_(limits_.nodes) {}

  bool lists() const { return limits_.lists; }
  std::uint32_t wanted() const { return wanted_; }
  // Nodes that are neither gone nor on their way out.
  std::uint32_t present() const;
  // In the order in which they were asked for.
  std::list<BookedNode>& nodes() { return nodes_; }
  const std::list<BookedNode>& nodes() const { return nodes_; }
  // Null: it has none of that name, or none with that member.
  BookedNode* find(const std::string& node);
  BookedNode* with_member(const std::string& member);

  void adopt(const PoolNode& node, runtime::TimePoint now);
  // kUsage: it has not so many.
  runtime::Result<void> want(std::uint32_t nodes);
  // All that are there now are wanted.
  void keep_all() { wanted_ = std::max(wanted_, present()); }
  void end(runtime::TimePoint now);
  // One of its nodes has failed before it has helped, or has helped.
  void note_failure(runtime::TimePoint now);
  void note_success() { failures_ = 0; }
  // Nodes beside its own are to be stopped, as they may have been started twice.
  void listed(const std::vector<ListedNode>& rows, runtime::TimePoint now);

  // Adds the orders about its nodes and those beside them. These count as carried out.
  void give_orders(std::vector<PoolOrder>& orders, runtime::TimePoint now);
  // Asks for a node, where one is wanted. It counts as asked for.
  bool ask_for_one(std::vector<PoolOrder>& orders, runtime::TimePoint now);
  // Whether nodes are left that are not gone, and whether one of them does not run with members.
  bool has_any() const { return not_gone() > 0 || has_strays_; }
  bool changes() const;

 private:
  std::uint32_t not_gone() const;
  void shrink(runtime::TimePoint now);

  const PoolLimits limits_;
  std::list<BookedNode> nodes_;
  std::uint32_t wanted_;
  std::uint32_t next_number_ = 0;
  std::uint32_t failures_ = 0;  // in a row
  runtime::TimePoint ask_again_{0};
  std::vector<StopNode> strays_{};
  bool has_strays_ = false;      // when it was listed last
  std::uint32_t survivors_ = 0;  // likewise: strays whose node is gone
};

}  // namespace troupe::actors
