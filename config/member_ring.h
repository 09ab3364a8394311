#pragma once

// Where the members of a run stand in the ring of its all-reduce, by what the topology says of
// their hosts (pipeline/steps/ring_order.h has the choice). A pure function of the topology and the
// number of members; nodes that meet compare the plan made of it.

#include <cstdint>
#include <string>
#include <vector>

#include "config/topology.h"
#include "pipeline/steps/ring_rows.h"

namespace troupe::config {

// The members in the order of the ring, member 0 first. Equal addresses of cluster.hosts are one
// host. In the order of their numbers where cluster.hosts says nothing of them: it is empty, or
// --workers asks for another number than it has. With as many, members that --workers brings to one
// machine stand as they would on theirs, and so repeat a lossy sum.
std::vector<std::uint32_t> member_ring(const ClusterSection& cluster, std::uint32_t members);

// Where these members are, and how fast they reach each other; nothing is said of their sums.
pipeline::RingCosts ring_costs(const ClusterSection& cluster, std::uint32_t members);

// For people: the hosts in the order of the ring with their members, and its slowest edge, if the
// members are of several hosts; and the rows that `costs` make of the ring, if any. One line
// without a break, or "".
std::string ring_text(const ClusterSection& cluster, std::uint32_t members,
                      const pipeline::RingCosts& costs);

}  // namespace troupe::config
