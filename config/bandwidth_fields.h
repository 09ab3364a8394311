#pragma once

// `cluster.bandwidth`: how fast the hosts of a run reach each other.

#include <vector>

#include "config/codec.h"
#include "config/topology.h"

namespace troupe::config {

CodecOf<std::vector<BandwidthSection>> bandwidth_list();

// Reports names that are not of cluster.hosts, and those that stand on both sides. The reader is at
// the cluster.
void check_bandwidth(const ClusterSection& cluster, Reader& reader);

}  // namespace troupe::config
