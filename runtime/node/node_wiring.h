#pragma once

// The cells of a node and the links between them, as its plan wires them. Nothing here changes
// after wire().

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/node/cell.h"
#include "runtime/node/gate.h"
#include "runtime/node/link.h"
#include "runtime/node/node.h"
#include "runtime/plan.h"
#include "runtime/wait_graph.h"

namespace troupe::runtime {

class NodeWiring {
 public:
  // Makes a cell for every actor of `part`, the plan of this node. `core` outlives it.
  NodeWiring(NodeCore& core, const Plan& part, int trace_records, const Log& log);
  // Once. Makes the links of the whole plan that begin or end here, but none of the actors that are
  // left out. `gate` carries the links that leave the node, and outlives the calls below; null:
  // there are no other nodes.
  void wire(const Plan& whole, const std::set<std::string>& left_out, Gate* gate);
  // Destroys the actors and all messages that wait for them.
  void clear();

  // In the order of the plan: an actor's number is its place.
  std::span<const std::unique_ptr<Cell>> cells() const { return cells_; }
  Cell& cell(ActorId actor) const { return *cells_[static_cast<std::size_t>(actor.index)]; }
  Cell* find(const std::string& actor) const;  // null: it is not on this node

  // Any thread. Whether no handler runs and no mailbox holds anything.
  bool quiet() const;
  // Any thread. The progress of this node's actors; see Activity.
  std::int64_t progress() const;
  // Any thread; figures may be a moment old.
  std::vector<LinkStats> link_stats() const;
  void add_links(WaitGraph& graph) const;
  std::vector<ActorTrace> traces() const;

 private:
  using ActorNodes = std::unordered_map<std::string_view, std::string_view>;
  // `position`: the link's in the whole plan (links_of()). `nodes`: see actor_nodes().
  void wire_link(const LinkPlan& link, std::size_t position, const ActorNodes& nodes);
  // `first`: the position of its first link. Takes as long as the actors here have links.
  void wire_mesh(const MeshPlan& mesh, std::size_t first, const std::set<std::string>& left_out,
                 const ActorNodes& nodes);

  std::unordered_map<std::string, ActorId> ids_;
  std::vector<std::unique_ptr<Cell>> cells_;
  std::vector<std::unique_ptr<Link>> links_;
  Gate* gate_ = nullptr;
};

}  // namespace troupe::runtime
