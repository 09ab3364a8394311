#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/trace.h"
#include "telemetry/node_sample.h"

namespace troupe::actors {

// What an actor can tell of the node it runs on: what the node does, its traces() and its
// wait_for_graph(). Called in the actor's handlers; short. Null: nothing is told.
struct NodeHooks {
  std::function<telemetry::NodeSample()> sample = nullptr;
  std::function<std::vector<runtime::ActorTrace>()> trace = nullptr;
  std::function<std::string()> waits = nullptr;
};

}  // namespace troupe::actors
