#pragma once

// What the actors of one node or of several did lately, on one clock, in the Trace Event format
// that Perfetto (ui.perfetto.dev) and chrome://tracing open.

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/trace.h"

namespace troupe::telemetry {

struct NodeTrace {
  std::string node;
  runtime::Duration offset{0};  // its clock less the one that the trace is told on
  runtime::Duration error{0};   // the offset may be off by that much
  std::vector<runtime::ActorTrace> actors;
};

struct Trace {
  std::vector<NodeTrace> nodes;      // in the order they are shown
  std::vector<std::string> missing;  // nodes that were asked and have not answered
  // Spans and sendings at most. Of more the newest are told: all from one moment on.
  std::size_t most_records = 400'000;
};

// One JSON object, its events in the order of their times: a process per node, a row per actor, a
// span per handler with its name ("batch", "timer") and, as "argument", the bytes of the message it
// took; an actor may add spans of its own, with arguments of its choice. Spans that overlap others
// without lying inside them stand on further rows of their actor, "NAME (2)", or are left out and
// counted in "otherData" where that takes more than 32. Times are
// microseconds on the trace's clock.
//
// Arrows ("s" and "f" of one id) lead from the handler in which a message was sent to the one that
// it was handled by, where both are told, and never back in time: nodes' clocks are moved a little
// where their offsets are not known well enough for that, an arrow's ends within their handlers, or
// it is left out.
// "otherData" says how many were, and what is missing.
//
// The trace of one node also has "ends", those of messages to and from other nodes, {"flow":
// "12/345", "ph": "s" or "f", "tid", "ts"}, by which traces of several nodes can be joined later.
std::string trace_json(const Trace& trace);

}  // namespace troupe::telemetry
