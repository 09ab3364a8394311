#include "runtime/node/node_wiring.h"

namespace troupe::runtime {

NodeWiring::NodeWiring(NodeCore& core, const Plan& part, int trace_records, const Log& log) {
  for (std::size_t i = 0; i < part.actors.size(); ++i) {
    const ActorId actor{static_cast<std::int32_t>(i)};
    ids_.emplace(part.actors[i].name, actor);
    cells_.push_back(std::make_unique<Cell>(core, actor, part.actors[i], trace_records, log));
  }
}

void NodeWiring::wire(const Plan& whole, const std::set<std::string>& left_out, Gate* gate) {
  gate_ = gate;
  if (gate_) {
    // The plan's first node hears of all others, and every other node of the first one alone: the
    // rest become known when their links are wired.
    const std::string& first = whole.actors.front().node;
    const std::string& here = cells_.front()->plan().node;
    for (const std::string& node : nodes_of(whole)) {
      if (node != here && (here == first || node == first)) gate_->add_peer(node);
    }
  }
  const auto nodes = actor_nodes(whole);
  for (std::size_t i = 0; i < whole.links.size(); ++i) {
    const LinkPlan& link = whole.links[i];
    if (left_out.contains(link.from) || left_out.contains(link.to)) continue;
    wire_link(link, i, nodes);
  }
  std::size_t first = whole.links.size();
  for (const MeshPlan& mesh : whole.meshes) {
    wire_mesh(mesh, first, left_out, nodes);
    first += mesh.size();
  }
  if (!gate_) return;
  for (const ActorPlan& actor : whole.actors) {
    if (!ids_.contains(actor.name)) gate_->add_actor(actor.name, actor.node);
  }
}

// A link whose other end is here too is made where it begins.
void NodeWiring::wire_mesh(const MeshPlan& mesh, std::size_t first,
                           const std::set<std::string>& left_out, const ActorNodes& nodes) {
  for (std::size_t here = 0; here < mesh.actors.size(); ++here) {
    if (find(mesh.actors[here]) == nullptr) continue;
    for (std::size_t other = 0; other < mesh.actors.size(); ++other) {
      if (other == here || left_out.contains(mesh.actors[other])) continue;
      wire_link(mesh.link(here, other), first + mesh.position(here, other), nodes);
      if (find(mesh.actors[other]) != nullptr) continue;
      wire_link(mesh.link(other, here), first + mesh.position(other, here), nodes);
    }
  }
}

void NodeWiring::wire_link(const LinkPlan& link, std::size_t position, const ActorNodes& nodes) {
  const auto number = static_cast<std::uint32_t>(position);
  Cell* from = find(link.from);
  Cell* to = find(link.to);
  if (from == nullptr && to == nullptr) return;
  if (from == nullptr) {
    const std::size_t peer = gate_->add_peer(std::string(nodes.at(link.from)));
    gate_->links().add_inlet(number, link, peer, *to);
    return;
  }
  const PortId port{static_cast<std::int32_t>(from->outs())};
  if (to == nullptr) {
    const std::size_t peer = gate_->add_peer(std::string(nodes.at(link.to)));
    from->add_out(gate_->links().add_outlet(number, link, *from, port, peer));
    return;
  }
  links_.push_back(std::make_unique<Link>(number, link, *from, port, *to));
  from->add_out(*links_.back());
}

void NodeWiring::clear() {
  for (const auto& cell : cells_) cell->clear();
}

Cell* NodeWiring::find(const std::string& actor) const {
  const auto found = ids_.find(actor);
  return found == ids_.end() ? nullptr : &cell(found->second);
}

// Two passes: an actor that is idle in both and has handled nothing in between did not run in
// between. If that holds for all of them, then between the passes none ran and none was due to.
bool NodeWiring::quiet() const {
  std::int64_t before = 0;
  for (const auto& cell : cells_) {
    before += cell->handled();
    if (cell->scheduled()) return false;
  }
  std::int64_t after = 0;
  for (const auto& cell : cells_) {
    if (cell->scheduled()) return false;
    after += cell->handled();
  }
  return before == after;
}

std::int64_t NodeWiring::progress() const {
  std::int64_t progress = 0;
  for (const auto& cell : cells_) progress += cell->progress();
  return progress;
}

std::vector<LinkStats> NodeWiring::link_stats() const {
  std::vector<LinkStats> all;
  for (const auto& link : links_) all.push_back(link->stats());
  if (gate_) {
    for (LinkStats& stats : gate_->links().stats()) all.push_back(std::move(stats));
  }
  return all;
}

void NodeWiring::add_links(WaitGraph& graph) const {
  for (const auto& link : links_) {
    graph.links.push_back(wait_of(link->stats(), static_cast<std::size_t>(link->from().id().index),
                                  static_cast<std::size_t>(link->to().id().index),
                                  link->sender_waits()));
  }
  if (gate_) gate_->links().add_to(graph);
}

std::vector<ActorTrace> NodeWiring::traces() const {
  std::vector<ActorTrace> all;
  for (const auto& cell : cells_) {
    all.push_back({cell->plan().name, cell->trace_snapshot()});
    if (gate_) gate_->links().settle_flows(all.back().trace);
  }
  return all;
}

}  // namespace troupe::runtime
