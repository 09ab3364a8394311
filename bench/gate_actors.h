#pragma once

// A producer that sends numbered messages, with one payload or none, over a plan's link as fast as
// its credits allow, and a consumer that checks every one of them: in one process or in two.

#include <chrono>
#include <cstdint>
#include <string>

#include "runtime/node/node.h"
#include "runtime/transport/wire.h"

namespace troupe::bench {

struct GateLoad {
  std::size_t payload_bytes = 0;  // 0: no payload; else a multiple of 8
  std::int64_t warming = 0;       // messages before those that are timed
  std::int64_t messages = 0;      // timed
  std::int64_t credits = 8;
  bool whole = false;  // looks at every byte of the payloads, not only at their ends
  // How long making a message, and taking it, lasts besides.
  std::chrono::microseconds producing{0}, consuming{0};

  std::int64_t all() const { return warming + messages; }
};

// From the end of the warming to the last message, in one process.
struct GateRun {
  double seconds = 0;
  double core_seconds = 0;
  std::string complaint;
};

// Both actors in this process.
GateRun run_gate_node(const GateLoad& load);
// One of them, the consumer where the wire listens, else the producer, which dials the `listener`.
GateRun run_gate_node(const GateLoad& load, runtime::Wire& wire, const std::string& listener,
                      bool listens);

}  // namespace troupe::bench
