#pragma once

// `troupe plan` tells how a run of a topology would go with various numbers of nodes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/topology_file.h"
#include "launch/run/measured_pace.h"
#include "pipeline/scaling/outlook.h"
#include "runtime/base/error.h"

namespace troupe::launch {

struct RunOutlook {
  std::vector<std::string> pools;  // in the order of the nodes of lines
  pipeline::Outlook outlook;
  std::uint64_t iterations = 0;  // of the whole run
  std::uint64_t events_per_iteration = 0;
  double speed = 0.0;  // of a worker, events per second
  pipeline::Doubt doubt;
  std::vector<std::string> assumptions;  // for people: nobody has measured that
};

// Puts what each pool's command `price` tells into its price_per_node_hour. Takes 5 s for each that
// has one, at most. kUsage, kLostPeers: one tells no price.
runtime::Result<void> ask_prices(std::vector<config::PoolSection>& pools);

// The outlook of pools whose prices were asked. `workers`: members of no pool, as of --workers;
// none: those of cluster.hosts. Without pools and without these, nodes are like this machine, and
// cost actors.monitor.price_per_node_hour. `earlier`: the folder of the run whose pace it is, whose
// pools started their nodes; "": none.
runtime::Result<RunOutlook> run_outlook(const config::LoadedTopology& loaded,
                                        std::optional<std::uint32_t> workers,
                                        const MeasuredPace& pace, const std::string& earlier);

}  // namespace troupe::launch
