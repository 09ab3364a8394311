#include "config/plan.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "pipeline/data/read_ahead.h"
#include "runtime/message.h"

namespace troupe::config {
namespace {

using runtime::Lane;
using runtime::Plan;

constexpr std::string_view kMember = "member.";

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
  if (members > 0 && !topology.cluster.pools.empty()) {
    plan.actors.push_back({"provisioner", "provisioner", root, true, node});
  }
}

void add_member(const Topology& topology, std::uint32_t member, std::uint32_t members, Plan& plan) {
  const std::string name = member_name(member);
  plan.actors.push_back({name, "member", "", false, name});
  plan.actors.push_back({loader_name(member), "loader", name, true, name});
  add_computing(topology, member, members, name, name, plan);
}

// Batches of replica NUMBER: as many micro-batches as the loader may read ahead, and the end of
// data. The replica takes in those of an iteration at once.
void add_batches_link(const LinkSizes& sizes, std::uint32_t number, const std::string& loader,
                      Plan& plan) {
  const std::int64_t asked = sizes.topology.loader.credits;
  const std::int64_t batches =
      (asked > 0 ? asked : pipeline::ReadAhead::most(sizes.networks.batch_bytes)) + 1;
  plan.links.push_back(
      {loader, fmt::format("batches.{}", number), replica_name(number), "batches", Lane::kData,
       batches, batches * (sizes.networks.batch_bytes + runtime::Message::kOverheadBytes), 0});
}

// A replica's contributions to the reducer beside it, and the reduced buckets back: two steps, or
// one and its repetition. The cycle replica -> reducer -> replica holds a token: a replica begins
// with a state, as if a step had been reduced before.
void add_step_links(const LinkSizes& sizes, std::uint32_t number, const std::string& reducer,
                    Plan& plan) {
  const std::string name = replica_name(number);
  const Credit credit = step_credit(sizes, 2);
  plan.links.push_back({name, "contributions", reducer, "contributions", Lane::kData,
                        credit.messages, credit.bytes, 0});
  plan.links.push_back({reducer, fmt::format("reduced.{}", number), name, "reduced", Lane::kData,
                        credit.messages, credit.bytes, 1});
}

void add_metrics_link(const std::string& from, Plan& plan) {
  plan.links.push_back({from, "metrics", "monitor", "metrics", Lane::kMetrics, 1024, 1 << 20, 0});
}

// Snapshots of these replicas for checkpointer and, if there is one, validator, two at a time, and
// the metrics of all of these for monitor.
void add_watching_links(const LinkSizes& sizes, const std::vector<std::uint32_t>& replicas,
                        bool is_one_process, Plan& plan) {
  // A snapshot that stays in its process shares the memory of the replica, so that the number of
  // such messages is what bounds them.
  const std::int64_t bytes =
      is_one_process ? 1 << 20
                     : 2 * (sizes.networks.state_bytes + runtime::Message::kOverheadBytes);
  const bool validates = sizes.topology.validator.validates();
  for (const std::uint32_t number : replicas) {
    const std::string replica = replica_name(number);
    plan.links.push_back(
        {replica, "snapshots", "checkpointer", "snapshots", Lane::kData, 2, bytes, 0});
    if (validates) {
      plan.links.push_back(
          {replica, "validation", "validator", "snapshots", Lane::kData, 2, bytes, 0});
    }
    add_metrics_link(replica, plan);
  }
  if (validates) add_metrics_link("validator", plan);
  add_metrics_link("checkpointer", plan);
}

}  // namespace

std::string member_name(std::uint32_t member, std::uint32_t process) {
  return runtime::process_name(fmt::format("{}{}", kMember, member), process);
}

std::string replica_name(std::uint32_t replica) { return fmt::format("replica.{}", replica); }

std::optional<MemberProcess> member_process(const std::string& name, std::uint32_t members) {
  if (!name.starts_with(kMember)) return std::nullopt;
  const char* const end = name.data() + name.size();
  MemberProcess found;
  const char* at = std::from_chars(name.data() + kMember.size(), end, found.member).ptr;
  if (at != end && *at == '.') std::from_chars(at + 1, end, found.process);
  const bool is_one = found.member < members && name == member_name(found.member, found.process);
  return is_one ? std::optional(found) : std::nullopt;
}

std::optional<std::uint32_t> member_number(const std::string& name, std::uint32_t members) {
  const auto found = member_process(name, members);
  return found ? std::optional(found->member) : std::nullopt;
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
    const std::string loader = members == 0 ? kHeadLoader : loader_name(member);
    reducers.push_back(reducer_name(member, members));
    leaders.push_back(member * topology.replica.count);
    if (members > 0) {
      roots.push_back(member_name(member));
      telling.push_back(loader);
    }
    telling.push_back(reducers.back());
    for (std::uint32_t i = 0; i < topology.replica.count; ++i) {
      const std::uint32_t replica = leaders.back() + i;
      add_batches_link(sizes, replica, loader, plan);
      add_step_links(sizes, replica, reducers.back(), plan);
      if (members > 0) add_batches_link(sizes, replica, kHeadLoader, plan);
      telling.push_back(replica_name(replica));
    }
  }
  add_ring_links(sizes, reducers, plan);
  add_watching_links(sizes, leaders, members == 0, plan);
  // Room for all that an actor tells in several seconds. Lines of steps and showers have links of
  // their own, so no sample takes their room.
  for (const std::string& actor : telling) {
    plan.links.push_back({actor, "samples", "monitor", "metrics", Lane::kMetrics, 64, 1 << 18, 0});
  }
  // A node's sample comes once a second or more seldom, and a trace of its actors when somebody
  // asks.
  for (const std::string& root : roots) {
    plan.links.push_back({root, "metrics", "monitor", "reports", Lane::kMetrics, 8, 4 << 20, 0});
  }
  RETURN_IF_ERROR(apply_link_overrides(topology, origins, plan));
  return plan;
}

}  // namespace troupe::config
