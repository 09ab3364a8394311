#pragma once

// A running node in a few numbers.

#include <string>

#include "runtime/node/node.h"
#include "telemetry/node_sample.h"

namespace troupe::launch {

// Samples the process (/proc/self), the node's actors, and those links that begin on it and have
// been used. Some 0.1 ms of a small node. Any thread, and from a handler of an actor of the node;
// also before the node begins and after it has ended. A number that cannot be found out is 0.
telemetry::NodeSample sample_node(const std::string& name, const runtime::Node& node);

}  // namespace troupe::launch
