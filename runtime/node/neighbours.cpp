#include "runtime/node/neighbours.h"

#include <vector>

namespace troupe::runtime {

Neighbours::Neighbours(const Plan& plan) {
  const std::vector<std::string> nodes = nodes_of(plan);
  CHECK(!nodes.empty(), "a plan has actors");
  first_ = nodes.front();
  for (const std::string& node : nodes) ranks_.emplace(node, ranks_.size());
  std::map<std::string, const std::string*> places;
  for (const ActorPlan& actor : plan.actors) places[actor.name] = &actor.node;
  for (const LinkPlan& link : plan.links) {
    const std::string& from = *places.at(link.from);
    const std::string& to = *places.at(link.to);
    if (from == to || from == first_ || to == first_) continue;
    neighbours_[from].insert(to);
    neighbours_[to].insert(from);
  }
}

bool Neighbours::dials(const std::string& node, const std::string& other) const {
  const auto one = ranks_.find(node), two = ranks_.find(other);
  CHECK(one != ranks_.end() && two != ranks_.end(), "both nodes are of the plan");
  return one->second > two->second;
}

const std::set<std::string>& Neighbours::neighbours_of(const std::string& node) const {
  static const std::set<std::string> kNone;
  const auto found = neighbours_.find(node);
  return found == neighbours_.end() ? kNone : found->second;
}

}  // namespace troupe::runtime
