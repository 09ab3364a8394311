#include "config/cluster_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "pipeline/micro_batch.h"
#include "runtime/message.h"

namespace troupe::config {
namespace {

using runtime::Plan;

std::string loader_name(std::uint32_t member) { return fmt::format("loader.{}", member); }

std::string reducer_name(std::uint32_t member) { return fmt::format("reducer.{}", member); }

void add_head(const ClusterPlanOptions& options, Plan& plan) {
  plan.actors.push_back({"coordinator", "coordinator", "", false, kHeadNode});
  plan.actors.push_back({"checkpointer", "checkpointer", "coordinator", true, kHeadNode});
  if (options.validator) {
    plan.actors.push_back({"validator", "validator", "coordinator", true, kHeadNode});
  }
  plan.actors.push_back({"monitor", "monitor", "coordinator", true, kHeadNode});
}

void add_member(const ClusterPlanOptions& options, std::uint32_t member, Plan& plan) {
  const std::string name = member_name(member);
  plan.actors.push_back({name, "member", "", false, name});
  plan.actors.push_back({loader_name(member), "loader", name, true, name});
  for (std::uint32_t i = 0; i < options.replicas_per_member; ++i) {
    const std::uint32_t number = member * options.replicas_per_member + i;
    plan.actors.push_back({fmt::format("replica.{}", number), "replica", name, true, name});
  }
  plan.actors.push_back({reducer_name(member), "reducer", name, false, name});
}

std::vector<std::string> reducers_in_order(const ClusterPlanOptions& options) {
  std::vector<std::uint32_t> numbers(options.members);
  std::iota(numbers.begin(), numbers.end(), 0u);
  const std::vector<std::uint32_t>& order =
      options.ring_order.empty() ? numbers : options.ring_order;
  CHECK(order.front() == 0 &&
            std::is_permutation(order.begin(), order.end(), numbers.begin(), numbers.end()),
        "a ring of other members");
  std::vector<std::string> reducers;
  for (const std::uint32_t member : order) reducers.push_back(reducer_name(member));
  return reducers;
}

}  // namespace

std::string member_name(std::uint32_t member) { return fmt::format("member.{}", member); }

std::vector<std::uint64_t> replica_weights(const ClusterPlanOptions& options) {
  CHECK(options.members > 0 && options.replicas_per_member > 0);
  CHECK(options.shares.empty() || options.shares.size() == options.members);
  std::vector<std::uint64_t> weights;
  for (std::uint32_t member = 0; member < options.members; ++member) {
    const std::uint64_t share = options.shares.empty() ? 1 : options.shares[member];
    weights.insert(weights.end(), options.replicas_per_member, share);
  }
  return weights;
}

runtime::Result<Plan> make_cluster_plan(const ClusterPlanOptions& options,
                                        const std::vector<LinkOverride>& overrides,
                                        const Origins& origins) {
  const std::vector<std::uint32_t> quotas =
      pipeline::micro_batch_quotas(options.micro_batches, replica_weights(options));
  Plan plan;
  add_head(options, plan);
  for (std::uint32_t member = 0; member < options.members; ++member) {
    add_member(options, member, plan);
  }
  TrainingSizes sizes = static_cast<const TrainingSizes&>(options);
  sizes.ring = options.members;
  for (std::uint32_t number = 0; number < quotas.size(); ++number) {
    const std::uint32_t member = number / options.replicas_per_member;
    add_replica_links(sizes, number, {loader_name(member), reducer_name(member)}, quotas[number],
                      plan);
  }
  add_ring_links(sizes, reducers_in_order(options), plan);
  add_watching_links(sizes, 2 * (options.state_bytes + runtime::Message::kOverheadBytes), plan);
  const std::int64_t largest_share = *std::max_element(quotas.begin(), quotas.end());
  RETURN_IF_ERROR(apply_link_overrides(overrides, origins, sizes, largest_share, plan));
  return plan;
}

std::uint32_t ring_position(const Plan& plan, std::uint32_t member) {
  std::map<std::string_view, std::string_view> next;
  for (const runtime::LinkPlan& link : plan.links) {
    if (link.from_port == "ring") next[link.from] = link.to;
  }
  const std::string there = reducer_name(member), first = reducer_name(0);
  std::uint32_t position = 0;
  for (std::string_view at = first; at != there; at = next[at]) {
    CHECK(next.contains(at) && position < next.size(), "a member that is in no ring");
    ++position;
  }
  return position;
}

}  // namespace troupe::config
