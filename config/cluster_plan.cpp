#include "config/cluster_plan.h"

#include <fmt/format.h>

#include "runtime/message.h"

namespace troupe::config {
namespace {

using runtime::Plan;

std::string reducer_name(std::uint32_t member) { return fmt::format("reducer.{}", member); }

void add_head(const ClusterPlanOptions& options, Plan& plan) {
  plan.actors.push_back({"coordinator", "coordinator", "", false, kHeadNode});
  plan.actors.push_back({kHeadLoader, "loader", "coordinator", true, kHeadNode});
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

}  // namespace

std::string member_name(std::uint32_t member) { return fmt::format("member.{}", member); }

std::string loader_name(std::uint32_t member) { return fmt::format("loader.{}", member); }

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
  Plan plan;
  add_head(options, plan);
  for (std::uint32_t member = 0; member < options.members; ++member) {
    add_member(options, member, plan);
  }
  TrainingSizes sizes = static_cast<const TrainingSizes&>(options);
  sizes.ring = options.members;
  std::vector<std::string> reducers;
  std::vector<std::uint32_t> leaders;
  std::vector<std::string> telling{kHeadLoader};
  for (std::uint32_t member = 0; member < options.members; ++member) {
    reducers.push_back(reducer_name(member));
    const std::uint32_t first = member * options.replicas_per_member;
    leaders.push_back(first);
    telling.push_back(loader_name(member));
    telling.push_back(reducer_name(member));
    for (std::uint32_t i = 0; i < options.replicas_per_member; ++i) {
      add_replica_links(sizes, first + i, {loader_name(member), reducer_name(member)}, plan);
      add_batches_link(sizes, first + i, kHeadLoader, plan);
      telling.push_back(fmt::format("replica.{}", first + i));
    }
  }
  add_ring_links(sizes, reducers, plan);
  add_watching_links(sizes, leaders, 2 * (options.state_bytes + runtime::Message::kOverheadBytes),
                     plan);
  add_sample_links(telling, plan);
  std::vector<std::string> members;
  for (std::uint32_t i = 0; i < options.members; ++i) members.push_back(member_name(i));
  add_report_links(members, plan);
  RETURN_IF_ERROR(apply_link_overrides(overrides, origins, plan));
  return plan;
}

}  // namespace troupe::config
