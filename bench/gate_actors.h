#pragma once

// The two actors of bench_gate: a producer that sends numbered messages, with one payload or none,
// over a plan's link as fast as its credits allow, and a consumer that checks every one of them.

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/node/node.h"
#include "runtime/transport/wire_types.h"

namespace troupe::bench {

struct GateLoad {
  std::size_t payload_bytes = 0;  // 0: no payload; else a multiple of 8
  std::int64_t warming = 0;       // messages before those that are timed
  std::int64_t messages = 0;      // timed
  std::int64_t credits = 8;
  bool whole = false;  // looks at every byte of the payloads, not only at their ends

  std::int64_t all() const { return warming + messages; }
};

// From the end of the warming to the last message, in one process.
struct GateRun {
  double seconds = 0;
  double core_seconds = 0;
  std::string complaint;
};

// The one link, and the nodes its ends are on; both "" where there is only one node.
runtime::Plan gate_plan(const GateLoad& load, const std::string& consumer_node,
                        const std::string& producer_node);
const runtime::WireTypes& gate_types();

// Makes the plan's actors. `consumed` and `produced` are filled by the end of the node that has the
// actor, and outlive it.
runtime::ActorFactory gate_actors(const GateLoad& load, GateRun& consumed, GateRun& produced);

}  // namespace troupe::bench
