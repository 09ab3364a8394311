#include "runtime/node/node.h"

#include <utility>

#include "runtime/node/node_core.h"

namespace troupe::runtime {

Node::Node(const Plan& plan, ActorFactory factory, NodeOptions options, const Clock& clock,
           Log& log)
    : core_(std::make_shared<NodeCore>(plan, std::move(factory), options, clock, log, nullptr,
                                       nullptr)) {}

Node::Node(const Plan& plan, ActorFactory factory, NodeOptions options, const Clock& clock,
           Log& log, Scheduler& scheduler)
    : core_(std::make_shared<NodeCore>(plan, std::move(factory), options, clock, log, &scheduler,
                                       nullptr)) {}

Node::Node(const Plan& plan, ActorFactory factory, NodeOptions options, const Clock& clock,
           Log& log, const Uplink& uplink, Scheduler* scheduler)
    : core_(std::make_shared<NodeCore>(plan, std::move(factory), options, clock, log, scheduler,
                                       &uplink)) {}

Node::~Node() {
  if (core_->running()) (void)core_->end();
}

NodeEnd Node::run() {
  begin();
  while (!tend()) core_->scheduler().wait(next_due());
  return end();
}

void Node::begin() { core_->begin(core_); }
bool Node::tend() { return core_->tend(); }
TimePoint Node::next_due() const { return core_->next_due(); }
NodeEnd Node::end() { return core_->end(); }
void Node::turn_gate(TimePoint until) { core_->gate()->turn(until); }
TimePoint Node::gate_due() const { return core_->gate()->next_due(); }
void Node::request_stop() { core_->tree().request_stop(); }

void Node::send_control(std::string_view actor, Message message) {
  core_->send_control_from_outside(actor, std::move(message));
}

std::string Node::wait_for_graph() const { return print(core_->wait_graph()); }
std::vector<LinkStats> Node::link_stats() const { return core_->wiring().link_stats(); }
std::vector<ActorStats> Node::actor_stats() const { return core_->tree().actor_stats(); }
std::vector<ActorTrace> Node::traces() const { return core_->wiring().traces(); }

std::vector<PeerStats> Node::peer_stats() const {
  return core_->gate() == nullptr ? std::vector<PeerStats>() : core_->gate()->peer_stats();
}

}  // namespace troupe::runtime
