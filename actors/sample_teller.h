#pragma once

// Numbers on their way from an actor to the Monitor. Those of quick steps go together, so that
// thousands of numbers a second cost tens of messages.
//
// One thread. Nothing here waits: what the link has no room for is dropped there, and counted.

#include <chrono>
#include <optional>
#include <string_view>

#include "actors/messages.h"
#include "runtime/actor.h"

namespace troupe::actors {

// Samples are sent when so much time has passed since the last ones, or when there are
// kMostSamples.
inline constexpr std::chrono::milliseconds kTellEvery{100};

class SampleTeller {
 public:
  // In start(): finds the out port, on the metrics lane. Where the plan wires none, the functions
  // below do nothing.
  void start(runtime::Context& context, std::string_view out_port = "samples");
  // Whether anybody listens; for numbers that cost something to compute.
  bool is_heard() const { return port_.valid(); }

  // Keeps a number; `name` as Sample has it. Sends those that are kept when there are kMostSamples.
  void add(runtime::Context& context, std::string_view name, double value);
  // So many members tell the Monitor something, this one's actors among them. Default: 1.
  void note_members(std::size_t members);
  // Sends what was added, if kTellEvery has passed since the last numbers were sent, or more where
  // there are many members (runtime::rhythm_among()).
  void tell(runtime::Context& context);
  // Sends what was added, because no more may come.
  void tell_all(runtime::Context& context);

 private:
  runtime::PortId port_;
  SampleMetrics kept_;
  std::optional<runtime::TimePoint> told_;
  runtime::Duration every_ = kTellEvery;
};

}  // namespace troupe::actors
