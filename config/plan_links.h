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

// Byte credit of a snapshot that shares the memory of the replica it is of: the number of such
// messages is what bounds them.
inline constexpr std::int64_t kSharedSnapshotBytes = 1 << 20;

// Actors beside which a replica stands on its node.
struct ReplicaNode {
  std::string loader = "loader";
  std::string reducer = "reducer";
};

// Appends to `plan` what leads to and from replica.NUMBER: its batches from the loader, its
// contributions to the reducer, and the reduced buckets back. The batch link has room for as many
// micro-batches as the loader reads ahead and for the end of data; the replica takes in those of an
// iteration at once. Contributions have room for two steps, or one and its repetition. The cycle
// replica -> reducer -> replica holds a token: a replica begins with a state, as if a step had been
// reduced before.
void add_replica_links(const LinkSizes& sizes, std::uint32_t number, const ReplicaNode& node,
                       runtime::Plan& plan);

// Appends the first of these from another loader, for a replica that is fed by that one instead.
void add_batches_link(const LinkSizes& sizes, std::uint32_t number, const std::string& loader,
                      runtime::Plan& plan);

// Appends a link from each reducer to each other one, reducer.M sending to it on port "ring.M":
// which of them stand next to each other in the ring, the View says. One alone has none. A link has
// room for all that crosses an edge in two steps, and for the sums of one that another lacks, so
// that it never holds back what the other end waits for; and as every reducer sends buckets of its
// own before any have come, every link holds a token.
void add_ring_links(const LinkSizes& sizes, const std::vector<std::string>& reducers,
                    runtime::Plan& plan);

// Appends the snapshots of each of these replicas to checkpointer and, if there is one, validator,
// two at a time in `snapshot_bytes`, and the metrics of all of these to monitor.
void add_watching_links(const Topology& topology, const std::vector<std::uint32_t>& replicas,
                        std::int64_t snapshot_bytes, runtime::Plan& plan);

// Appends a link of each of these actors to monitor for its samples. Lines of steps and showers
// have links of their own (add_watching_links), so no sample takes their room.
void add_sample_links(const std::vector<std::string>& actors, runtime::Plan& plan);

// Appends what each of these actors tells monitor of its node when it is asked.
void add_report_links(const std::vector<std::string>& members, runtime::Plan& plan);

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
