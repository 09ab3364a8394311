#pragma once

// The wiring of a training: in one process, or in a head and members that compute.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/codec.h"
#include "config/plan_links.h"
#include "config/topology.h"
#include "runtime/base/error.h"
#include "runtime/plan.h"

namespace troupe::config {

// Name of the node that holds everything but the computing.
inline constexpr const char* kHeadNode = "head";

// "member.2": the name of a computing node, and of the actor that is its root. The second process
// that carries out this node is called "member.2.2" (process_name() in runtime/plan.h).
std::string member_name(std::uint32_t member, std::uint32_t process = 1);

// The numbers in such a name, the member below `members`; none: it is no such name.
struct MemberProcess {
  std::uint32_t member = 0;
  std::uint32_t process = 1;
};
std::optional<MemberProcess> member_process(const std::string& name,
                                            std::uint32_t members = kMostMembers);
std::optional<std::uint32_t> member_number(const std::string& name,
                                           std::uint32_t members = kMostMembers);

// Names of the loader that feeds a member's replicas: its own, and the head's, which feeds those of
// members without data.
std::string loader_name(std::uint32_t member);
// "replica.2"; replicas are numbered over all members.
std::string replica_name(std::uint32_t replica);
inline constexpr const char* kHeadLoader = "loader";

// The name of a member's reducer; `members` is 0 for the only one of a run in one process.
std::string reducer_name(std::uint32_t member, std::uint32_t members);

// The weight of every replica over all members in order, as pipeline::assign_micro_batches takes
// them: that of its member. `members` is 0 for one process. CHECKs what config::check_workers
// refuses.
std::vector<std::uint64_t> replica_weights(const Topology& topology, std::uint32_t members);

// Without members everything is on one node without a name: coordinator owns loader, replica.0 ..
// replica.N-1, reducer, checkpointer, validator and monitor.
//
// Else node "head" has coordinator, its root, which owns loader, checkpointer, validator and
// monitor. Node "member.k" has the actor member.k, its root, which owns loader.k, its replicas and
// reducer.k. Replicas are numbered over all members in order: with two each, replica.3 is on
// member.1. The reducers are a mesh: each has a link to every other one. Each replica has a link
// from the loader beside it and one from the head's, which feeds members without data; one of the
// two carries nothing.
//
// The first replica of every member can send snapshots and metrics; every loader, reducer and
// replica can send samples, and the actor member.k what its node does. Members tell the head
// nothing else. Snapshots that leave their process have room for two whole states. Credits follow
// from the sizes (plan_links.h); the topology's `links` set what they name. The plan passes
// runtime::check.
//
// kTopology: every override that cannot be followed, as apply_link_overrides() has it.
runtime::Result<runtime::Plan> make_plan(const Topology& topology, const NetworkSizes& networks,
                                         std::uint32_t members, const Origins& origins);

}  // namespace troupe::config
