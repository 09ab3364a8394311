#pragma once

// The trace of a cell: a span per handler, and the messages that it sends.

#include <cstdint>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/trace.h"

namespace troupe::runtime {

// The thread that runs the cell calls; snapshots may be taken by any thread. `clock` outlives it.
class CellTrace {
 public:
  // `long_handlers`: the actor has a thread of its own, so a handler may run for long. Only then is
  // the clock read for each message that is sent; else it is sent when its handler began.
  CellTrace(int records, const Clock& clock, bool long_handlers)
      : ring_(records), clock_(clock), long_handlers_(long_handlers) {}

  TraceRing& ring() { return ring_; }
  TraceSnapshot snapshot() const { return ring_.snapshot(); }

  // Before the first handler of a slice: each further one begins when the last one ends.
  void begin_slice() {
    if (ring_.enabled()) handler_started_ = clock_.now();
  }
  void end_handler(std::uint32_t name, std::int64_t argument, TraceFlow flow) {
    if (!ring_.enabled()) return;
    const TimePoint ended = clock_.now();
    ring_.write({name, handler_started_, ended, argument, flow});
    handler_started_ = ended;
  }
  void sent(TraceFlow flow, std::int64_t bytes) {
    if (!ring_.enabled()) return;
    ring_.write_sent(flow, long_handlers_ ? clock_.now() : handler_started_, bytes);
  }
  // A message past all links, to another actor of the node, from the origin `link`. Its number.
  std::uint64_t sent_control(std::uint32_t link, std::int64_t bytes) {
    sent({link, ++controls_sent_}, bytes);
    return controls_sent_;
  }

  // The ring's number of a message's name. Names are string literals: the same address is the same
  // name, so that the ring's lock is taken only when the kind of message changes.
  std::uint32_t number_of(std::string_view message_name) {
    if (message_name.data() != last_name_) {
      last_name_ = message_name.data();
      last_number_ = ring_.name(message_name);
    }
    return last_number_;
  }

 private:
  TraceRing ring_;
  const Clock& clock_;
  const bool long_handlers_;
  TimePoint handler_started_{0};
  const char* last_name_ = nullptr;
  std::uint32_t last_number_ = 0;
  std::uint64_t controls_sent_ = 0;
};

}  // namespace troupe::runtime
