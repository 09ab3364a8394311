#include "config/plan.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "runtime/message.h"

namespace troupe::config {
namespace {

using runtime::Plan;

constexpr std::string_view kMember = "member.";

std::string replica_name(std::uint32_t replica) { return fmt::format("replica.{}", replica); }

// The replicas and the reducer of one member, or of the only process.
void add_computing(const Topology& topology, std::uint32_t member, std::uint32_t members,
                   const std::string& owner, const std::string& node, Plan& plan) {
  for (std::uint32_t i = 0; i < topology.replica.count; ++i) {
    plan.actors.push_back(
        {replica_name(member * topology.replica.count + i), "replica", owner, true, node});
  }
  plan.actors.push_back({reducer_name(member, members), "reducer", owner, false, node});
}

void add_head(const Topology& topology, std::uint32_t members, Plan& plan) {
  const std::string node = members == 0 ? "" : kHeadNode;
  const std::string root = "coordinator";
  plan.actors.push_back({root, root, "", false, node});
  plan.actors.push_back({kHeadLoader, "loader", root, true, node});
  if (members == 0) add_computing(topology, 0, members, root, node, plan);
  plan.actors.push_back({"checkpointer", "checkpointer", root, true, node});
  if (topology.validator.validates()) {
    plan.actors.push_back({"validator", "validator", root, true, node});
  }
  plan.actors.push_back({"monitor", "monitor", root, true, node});
}

void add_member(const Topology& topology, std::uint32_t member, std::uint32_t members, Plan& plan) {
  const std::string name = member_name(member);
  plan.actors.push_back({name, "member", "", false, name});
  plan.actors.push_back({loader_name(member), "loader", name, true, name});
  add_computing(topology, member, members, name, name, plan);
}

}  // namespace

std::string member_name(std::uint32_t member) { return fmt::format("{}{}", kMember, member); }

std::optional<std::uint32_t> member_number(const std::string& name, std::uint32_t members) {
  std::uint32_t number = 0;
  if (!name.starts_with(kMember)) return std::nullopt;
  std::from_chars(name.data() + kMember.size(), name.data() + name.size(), number);
  if (number >= members || name != member_name(number)) return std::nullopt;
  return number;
}

std::string loader_name(std::uint32_t member) { return fmt::format("loader.{}", member); }

std::string reducer_name(std::uint32_t member, std::uint32_t members) {
  return members == 0 ? "reducer" : fmt::format("reducer.{}", member);
}

std::vector<std::uint64_t> replica_weights(const Topology& topology, std::uint32_t members) {
  const std::vector<std::uint64_t>& shares = topology.cluster.shares;
  CHECK(members == 0 || shares.empty() || shares.size() == members, "a share for each member");
  std::vector<std::uint64_t> weights;
  for (std::uint32_t member = 0; member < std::max(members, 1U); ++member) {
    const bool is_even = members == 0 || shares.empty();
    weights.insert(weights.end(), topology.replica.count, is_even ? 1 : shares[member]);
  }
  return weights;
}

runtime::Result<Plan> make_plan(const Topology& topology, const NetworkSizes& networks,
                                std::uint32_t members, const Origins& origins) {
  Plan plan;
  add_head(topology, members, plan);
  for (std::uint32_t i = 0; i < members; ++i) add_member(topology, i, members, plan);
  const LinkSizes sizes{topology, networks, std::max(members, 1U)};
  std::vector<std::string> reducers, roots, telling{kHeadLoader};
  std::vector<std::uint32_t> leaders;
  for (std::uint32_t member = 0; member < sizes.ring; ++member) {
    const ReplicaNode node{members == 0 ? kHeadLoader : loader_name(member),
                           reducer_name(member, members)};
    reducers.push_back(node.reducer);
    leaders.push_back(member * topology.replica.count);
    if (members > 0) {
      roots.push_back(member_name(member));
      telling.push_back(node.loader);
    }
    telling.push_back(node.reducer);
    for (std::uint32_t i = 0; i < topology.replica.count; ++i) {
      const std::uint32_t replica = leaders.back() + i;
      add_replica_links(sizes, replica, node, plan);
      if (members > 0) add_batches_link(sizes, replica, kHeadLoader, plan);
      telling.push_back(replica_name(replica));
    }
  }
  add_ring_links(sizes, reducers, plan);
  add_watching_links(topology, leaders,
                     members == 0 ? kSharedSnapshotBytes
                                  : 2 * (networks.state_bytes + runtime::Message::kOverheadBytes),
                     plan);
  add_sample_links(telling, plan);
  add_report_links(roots, plan);
  RETURN_IF_ERROR(apply_link_overrides(topology, origins, plan));
  return plan;
}

}  // namespace troupe::config
