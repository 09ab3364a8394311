#pragma once

// The wiring of a training in several processes: a head, and members that compute.

#include <cstdint>
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

// "member.2": the name of a computing node, and of the actor that is its root.
std::string member_name(std::uint32_t member);

// Names of the loader that feeds a member's replicas: its own, and the head's, which feeds those of
// members without data.
std::string loader_name(std::uint32_t member);
inline constexpr const char* kHeadLoader = "loader";

struct ClusterPlanOptions : TrainingSizes {
  // Computing nodes, from 1; default 1.
  std::uint32_t members = 1;
  // Compute streams of each, from 1; default 1. They share the member's loader.
  std::uint32_t replicas_per_member = 1;
  // Weight of each member when micro-batches are shared out, as many as members; a member of weight
  // 0 takes none, and one at least is above 0. Empty, the default: all equal.
  std::vector<std::uint64_t> shares;
  // Bytes of a whole training state as it is sent to another process. No default that is of use.
  std::int64_t state_bytes = 0;
};

// The weight of every replica over all members in order, as pipeline::assign_micro_batches takes
// them: that of its member. CHECKs the sizes that ClusterPlanOptions promises.
std::vector<std::uint64_t> replica_weights(const ClusterPlanOptions& options);

// Node "head": coordinator, its root, owns loader, checkpointer, validator and monitor. Node
// "member.k" for each member: the actor member.k, its root, owns loader.k, its replicas and
// reducer.k. Replicas are numbered over all members in order: with two each, replica.3 is on
// member.1. Every reducer has a link to every other one.
//
// Links as in one process (plan_links.h), each replica fed by the loader beside it or, of a member
// without data, by the head's: the other one's link carries nothing then. The first replica of
// every member can send snapshots and metrics; every loader, reducer and replica can send samples,
// and the actor member.k what its node does, which are the only ones that members tell the head
// besides. Snapshots leave their process, so their links have room for two whole states. The plan
// passes runtime::check.
//
// kTopology: every override that cannot be followed, as apply_link_overrides() has it.
runtime::Result<runtime::Plan> make_cluster_plan(const ClusterPlanOptions& options,
                                                 const std::vector<LinkOverride>& overrides,
                                                 const Origins& origins);

}  // namespace troupe::config
