#pragma once

// The latest doings of the actors of one node or of several, on one clock, in the Trace Event
// format that Perfetto (ui.perfetto.dev) and chrome://tracing open. Times and offsets are within
// 2^60 ns of 0, as unpack_actors() and ClockOffset give them.

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
  // How many spans and sendings are told at most: the newest, all from one moment on.
  std::size_t most_records = 400'000;
};

// One JSON object, its events in the order of their times. There is a process per node, a row per
// actor, and a span per handler with its name ("batch", "timer") and, as "argument", the bytes of
// the message it took. An actor may add spans of its own, with arguments of its choice. Spans that
// overlap others without lying inside them stand on further rows of their actor, "NAME (2)". Where
// that takes more than 32 rows they are left out. Times are microseconds on the trace's clock.
//
// An arrow ("s" and "f" of one id) leads from the handler that sent a message to the one that
// handled it, where both are told. It never leads back in time: the nodes' clocks are moved a
// little where their offsets are not known well enough, or the arrow's ends within their handlers,
// or the arrow is left out.
//
// "otherData" says which nodes are missing, and how many spans and arrows were left out.
//
// The trace of one node also has "ends": the ends of messages to and from other nodes, {"flow":
// "12/345", "ph": "s" or "f", "tid", "ts"}, by which traces of several nodes can be joined later.
std::string trace_json(const Trace& trace);

}  // namespace troupe::telemetry
