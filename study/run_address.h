#pragma once

// Where the members of a trial's run meet.

#include <cstdint>
#include <string>
#include <vector>

#include "config/topology.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"

namespace troupe::study {

struct RunAddress {
  std::string listen;           // of the head: HOST:PORT
  std::string dial;             // of processes of this machine, with the head's key
  runtime::Descriptor claim{};  // of its ports, until the run has ended
};

// At free ports of the host at which the topology's head listens; `turn`: see
// launch::claim_ports(). kUsage: the host is not this machine, no ports are free, or the keys
// cannot be read. Asks the system's resolver.
runtime::Result<RunAddress> run_address(const config::ClusterSection& cluster, std::uint32_t turn);
// The options with which verbs prove themselves to that head.
std::vector<std::string> key_words(const config::ClusterSection& cluster);

}  // namespace troupe::study
