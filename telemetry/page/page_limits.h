#pragma once

// What either end of a page's connection takes from the other, and spends on it, at most.

#include <chrono>
#include <cstddef>

namespace troupe::telemetry {

struct PageLimits {
  // Further clients are told to try later. Never more than a quarter of the files that the process
  // may open.
  std::size_t connections = 256;
  std::size_t header_bytes = std::size_t{16} << 10;  // of a request, and of an answer
  std::size_t body_bytes = std::size_t{1} << 10;     // of a request
  // A connection is closed when nothing moves on it for so long: no request comes, or the other end
  // takes nothing of what it is sent. A run has as much time to answer a question.
  std::chrono::milliseconds idle_time{30'000};
  std::chrono::milliseconds update_time{100};              // between two events of a run
  std::chrono::milliseconds comment_time{15'000};          // of silence on a stream of events
  std::size_t send_buffer_bytes = std::size_t{256} << 10;  // of the system, per connection
  std::size_t answer_bytes = std::size_t{1} << 30;         // that a client reads of an answer
  std::size_t event_bytes = std::size_t{256} << 20;        // that it reads of an event
};

}  // namespace troupe::telemetry
