#pragma once

#include <chrono>
#include <set>
#include <string>

#include "runtime/base/clock.h"

namespace troupe::runtime {

struct NodeOptions {
  // Threads that run the actors without one of their own; at least 1.
  int scheduler_threads = 2;
  // Time from the moment an actor is asked to stop to the moment it is given up.
  Duration shutdown_deadline = std::chrono::seconds(20);
  // Without any data message handled, actor started or ended, or post_progress() for this long, the
  // wait-for graph is logged and the culprit named. If then nothing but timers can move, the run
  // ends with that as its error; if some handler is still running, it goes on and is named again
  // after as long. When nothing at all can move any more, not even a timer, the run ends at once.
  // With several nodes the plan's first one judges for all in the same way, with one exception: a
  // handler that runs for eight times as long is taken to hang and ends the run too.
  Duration stuck_after = std::chrono::seconds(60);
  // Trace records kept per actor (a power of two), of 40 bytes; every handler writes one, and every
  // message that is sent. 0: none are kept.
  int trace_records = 4096;
  // Actors of the plan's part that this node leaves out, with all their links. None of them owns an
  // actor that stays. Messages to them come back.
  std::set<std::string> left_out = {};
};

}  // namespace troupe::runtime
