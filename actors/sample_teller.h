#pragma once

// Numbers on their way from an actor to the Monitor: those of quick steps go together, so that
// thousands of numbers a second cost tens of messages.
//
// One thread. Nothing here waits: what the link has no room for is dropped there and counted.

#include <chrono>
#include <optional>
#include <string_view>

#include "actors/messages.h"
#include "runtime/actor.h"

namespace troupe::actors {

// Samples are sent when so much time has passed since the last were, or kMostSamples are there.
inline constexpr std::chrono::milliseconds kTellEvery{100};

class SampleTeller {
 public:
  // In start(): finds the out port, on the metrics lane. Where the plan wires none, nothing below
  // does anything.
  void start(runtime::Context& context, std::string_view out_port = "samples");
  // Whether anybody listens, for numbers that cost something to find.
  bool is_heard() const { return port_.valid(); }

  // Keeps a number; `name` as Sample has it. Nothing is sent before tell() but what is too much to
  // keep.
  void add(runtime::Context& context, std::string_view name, double value);
  // Sends what was added, if it is time. So a number is told with the first step that ends
  // kTellEvery after the last that was told.
  void tell(runtime::Context& context);
  // Sends what was added, for no more may come.
  void tell_all(runtime::Context& context);

 private:
  runtime::PortId port_;
  SampleMetrics kept_;
  std::optional<runtime::TimePoint> told_;
};

}  // namespace troupe::actors
