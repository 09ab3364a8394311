#pragma once

// What a running node does, in a few numbers.

#include <string>

#include "runtime/node/node.h"
#include "telemetry/node_sample.h"

namespace troupe::launch {

// Of the process (/proc/self), of the node's actors, and of those links that begin on it and have
// been used. Some 0.1 ms of a small node. Any thread, and from a handler of an actor of the node;
// also before the node begins and after it has ended. What cannot be found out is 0.
telemetry::NodeSample sample_node(const std::string& name, const runtime::Node& node);

}  // namespace troupe::launch
