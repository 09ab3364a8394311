#pragma once

// A wire at whose other ends the speakers of a talk are: hands its node what they say, and throws
// away what the node answers. A speaker whom the node has dialed answers with its next connect;
// others dial the node then.

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/talk.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/node/node.h"
#include "runtime/step_scheduler.h"
#include "runtime/transport/wire.h"

namespace troupe::fuzz {

class TalkWire final : public runtime::Wire {
 public:
  // Time moves when a line says so. At the head's address is speaker 0, and at all others, whatever
  // they are, speaker 1.
  TalkWire(runtime::ManualClock& clock, std::string head_address)
      : clock_(clock), head_address_(std::move(head_address)) {}

  void add(Line line) { lines_.push_back(std::move(line)); }

  std::string address() const override { return "tcp://127.0.0.1:7000"; }
  runtime::Result<runtime::ConnectionId> dial(const std::string& address) override {
    End& end = ends_[address == head_address_ ? 0 : 1];
    end.dialed = runtime::ConnectionId{++last_};
    return *end.dialed;
  }
  void send(runtime::ConnectionId, runtime::Lane, runtime::Packet) override {}
  void close(runtime::ConnectionId connection) override {
    for (End& end : ends_) {
      if (end.open == connection) end.open.reset();
      if (end.dialed == connection) end.dialed.reset();
    }
  }
  void poll(runtime::WireEvents& events, runtime::TimePoint) override {
    for (Line& line : std::exchange(lines_, {})) say(events, line);
  }
  void wake() override {}

 private:
  struct End {
    std::optional<runtime::ConnectionId> open, dialed;
  };

  void say(runtime::WireEvents& events, Line& line) {
    End& end = ends_[line.speaker];
    switch (line.deed) {
      case Deed::kConnect:
        return connect(events, end);
      case Deed::kClose:
        return hang_up(events, end);
      case Deed::kWait:
        return clock_.advance(std::chrono::milliseconds(100 * (1 + line.lane)));
      case Deed::kSay:
        if (!end.open) return;
        return events.arrived(*end.open, static_cast<runtime::Lane>(line.lane),
                              std::move(line.packet));
    }
  }
  void connect(runtime::WireEvents& events, End& end) {
    hang_up(events, end);
    const bool dialed = end.dialed.has_value();
    const auto connection = dialed ? *end.dialed : runtime::ConnectionId{++last_};
    end.dialed.reset();
    end.open = connection;
    events.connected(connection, {dialed, "talk", "", false});
  }
  static void hang_up(runtime::WireEvents& events, End& end) {
    if (!end.open) return;
    events.disconnected(*std::exchange(end.open, std::nullopt),
                        {runtime::ErrorKind::kLostPeers, "it was closed"});
  }

  runtime::ManualClock& clock_;
  const std::string head_address_;
  std::uint64_t last_ = 0;
  std::array<End, kSpeakers> ends_;
  std::vector<Line> lines_;
};

// One round of a node that is driven by hand.
inline void turn(runtime::Node& node, runtime::StepScheduler& scheduler) {
  node.turn_gate(runtime::TimePoint{0});
  while (scheduler.run_one()) {
  }
  node.tend();
}

// Says all lines to the node, which must end when it is asked to, whatever was said.
inline void hold_talk(runtime::Node& node, TalkWire& wire, runtime::StepScheduler& scheduler,
                      runtime::ManualClock& clock, std::vector<Line> talk) {
  node.begin();
  for (Line& line : talk) {
    wire.add(std::move(line));
    turn(node, scheduler);
  }
  node.request_stop();
  // In small steps: a node that has slept itself forgives the others their silence.
  for (int i = 0; i < 600 && !node.tend(); ++i) {
    clock.advance(std::chrono::milliseconds(100));
    turn(node, scheduler);
  }
  CHECK(node.end().unstopped.empty(), "the node did not end");
}

}  // namespace troupe::fuzz
