#pragma once

// The links between actors of a plan, by their sizes and by what the topology says about them.

#include <cstdint>
#include <string>
#include <vector>

#include "config/codec.h"
#include "config/topology.h"
#include "runtime/base/error.h"
#include "runtime/plan.h"

namespace troupe::config {

// The sizes of the networks, from which the bounds of links follow.
struct NetworkSizes {
  std::int64_t batch_bytes = 0;            // payload of one micro-batch
  std::int64_t contribution_elements = 0;  // of the largest step of the schedule
  std::int64_t state_bytes = 0;            // a whole training state as another process gets it
};

// One plan's sizes. The topology outlives it.
struct LinkSizes {
  const Topology& topology;
  NetworkSizes networks;
  std::uint32_t ring = 1;  // reducers that stand in one
};

// Room for messages of a link.
struct Credit {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
};

// Room for the buckets and the header of the largest step, so many times.
Credit step_credit(const LinkSizes& sizes, std::int64_t times);

// Appends the mesh of all reducers, in which each sends to reducer.M on its port "ring.M": which of
// them stand next to each other in the ring, the View says. One alone has none. A link has
// room for all that crosses an edge in two steps, and for the sums of one that another lacks, so
// that it never holds back what the other end waits for; and as every reducer sends buckets of its
// own before any have come, every link holds a token.
void add_ring_links(const LinkSizes& sizes, const std::vector<std::string>& reducers,
                    runtime::Plan& plan);

// Sets what the topology's `links` name on every link between actors of their kinds (a kind is the
// actor's name up to the dot).
//
// One that names a link which other runs have, in one process or several, sets nothing: a topology
// is to do for all of them.
//
// kTopology: every override that names no link of any run, or leaves a link too little for
// anything to move, each at its place in the file. `origins` are those of the topology. The plan is
// then half changed and of no use.
runtime::Result<void> apply_link_overrides(const Topology& topology, const Origins& origins,
                                           runtime::Plan& plan);

}  // namespace troupe::config
