#pragma once

// Which nodes of a plan have to do with each other: every one with the plan's first node, and
// besides with its neighbours, those that it shares links with. Neighbours learn of each other from
// the first node; see Directory in packets.h.

#include <map>
#include <set>
#include <string>

#include "runtime/plan.h"

namespace troupe::runtime {

// Fixed when it is made; any thread.
class Neighbours {
 public:
  // The plan passes check().
  explicit Neighbours(const Plan& plan);

  const std::string& first() const { return first_; }
  // Of two nodes that can be dialed equally well the one that the plan names later dials the other.
  // CHECKs that the plan has both.
  bool dials(const std::string& node, const std::string& other) const;
  // None of the first node, and of nodes that share links with no other.
  const std::set<std::string>& neighbours_of(const std::string& node) const;

 private:
  std::string first_;
  std::map<std::string, std::size_t> ranks_;
  std::map<std::string, std::set<std::string>> neighbours_;
};

}  // namespace troupe::runtime
