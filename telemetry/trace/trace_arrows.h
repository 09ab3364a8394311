#pragma once

// Finds which handlers of a trace are joined by messages.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/trace.h"

namespace troupe::telemetry {

// A message left a span, or was handled in one. All times are on one clock.
struct ArrowEnd {
  runtime::TraceFlow flow;
  bool sent = false;
  std::size_t node = 0;                  // position
  std::size_t span = 0;                  // of the caller's choice
  runtime::TimePoint time{0};            // within the span
  runtime::TimePoint begins{0}, end{0};  // of the span
};

struct Arrow {
  ArrowEnd from, to;  // from.time <= to.time, each within its span
};

struct Arrows {
  std::vector<Arrow> arrows;
  std::vector<ArrowEnd> loose;  // messages of links whose other ends are not there
  std::size_t left_out = 0;     // they would lead back in time
};

// A flow that has more than two ends, or two of one kind, joins nothing.
Arrows join_ends(std::vector<ArrowEnd> ends);

// How far each node's clock, by position, has to be moved on so that no message is handled before
// it is sent. Clocks move as little as can be, and the first one not at all. All are 0 where that
// cannot be. This is needed because offsets of clocks are exact to some 0.1 ms, and messages can be
// faster.
std::vector<runtime::Duration> moves_of_clocks(const std::vector<ArrowEnd>& ends,
                                               std::size_t nodes);

}  // namespace troupe::telemetry
