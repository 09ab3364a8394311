#include "pipeline/steps/member_weights.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"

namespace troupe::pipeline {

MemberWeights::MemberWeights(std::vector<std::uint64_t> weights, std::uint32_t replicas_per_member)
    : weights_(std::move(weights)), replicas_per_member_(replicas_per_member) {}

void MemberWeights::set(std::vector<std::uint64_t> weights) {
  CHECK(weights.size() == weights_.size(), "a weight for each replica");
  weights_ = std::move(weights);
}

void MemberWeights::weigh_as_others(std::uint32_t replica) {
  std::uint64_t sum = 0, count = 0;
  for (std::size_t other = 0; other < weights_.size(); ++other) {
    if (other == replica || weights_[other] == 0) continue;
    sum += weights_[other];
    ++count;
  }
  if (weights_[replica] == 0 || count == 0) return;
  weights_[replica] = std::max<std::uint64_t>(sum / count, 1);
}

std::vector<std::uint64_t> MemberWeights::among(const std::set<std::uint32_t>& members) const {
  std::vector<std::uint64_t> weights = weights_;
  bool any = false, one_stays = false;
  for (std::size_t replica = 0; replica < weights.size(); ++replica) {
    const bool is_one = members.contains(member_of(replica));
    const bool leaves = relieved_.contains(member_of(replica));
    if (!is_one || leaves) weights[replica] = 0;
    any = any || weights[replica] > 0;
    one_stays = one_stays || (is_one && !leaves);
  }
  for (std::size_t replica = 0; !any && replica < weights.size(); ++replica) {
    const bool leaves = relieved_.contains(member_of(replica));
    if (members.contains(member_of(replica)) && !(one_stays && leaves)) weights[replica] = 1;
  }
  return weights;
}

}  // namespace troupe::pipeline
