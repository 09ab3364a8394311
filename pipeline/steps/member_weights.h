#pragma once

// How much of the micro-batches each replica of a run gets, beside the others: what was measured
// of its speed, or what the topology says. Members that are about to leave get none. One thread.

#include <cstdint>
#include <set>
#include <vector>

namespace troupe::pipeline {

class MemberWeights {
 public:
  // One of each replica, some above 0; `replicas_per_member`: replicas are numbered over all
  // members in order.
  MemberWeights(std::vector<std::uint64_t> weights, std::uint32_t replicas_per_member);

  const std::vector<std::uint64_t>& all() const { return weights_; }
  // As many as before. CHECKs that.
  void set(std::vector<std::uint64_t> weights);
  // Nothing is known of the replica's speed any more: it weighs as the others do in the mean. One
  // of weight 0 keeps it.
  void weigh_as_others(std::uint32_t replica);

  // The member is about to leave, or stays after all.
  void relieve(std::uint32_t member) { relieved_.insert(member); }
  void keep(std::uint32_t member) { relieved_.erase(member); }
  const std::set<std::uint32_t>& relieved() const { return relieved_; }

  // A weight for each replica when these members share out: 0 for those of others, and of relieved
  // ones while others stay. If only members of weight 0 are left, all that stay count the same.
  std::vector<std::uint64_t> among(const std::set<std::uint32_t>& members) const;

 private:
  std::uint32_t member_of(std::size_t replica) const {
    return static_cast<std::uint32_t>(replica / replicas_per_member_);
  }

  std::vector<std::uint64_t> weights_;
  std::uint32_t replicas_per_member_;
  std::set<std::uint32_t> relieved_;
};

}  // namespace troupe::pipeline
