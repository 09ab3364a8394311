#pragma once

// What the page's server spends on its clients, at most.

#include <chrono>
#include <cstddef>

namespace troupe::telemetry {

struct PageLimits {
  // Further ones take the place of one that has nothing to ask, or are refused. Never more than a
  // quarter of the files that the process may open.
  std::size_t connections = 256;
  // Taken between two pauses of a tenth of a second, so that a flood of connections costs bounded
  // time. So many others wait at the door; those beyond are not answered, and try again by
  // themselves in a second or more.
  std::size_t arrivals = 25;
  int waiting = 256;
  std::size_t header_bytes = std::size_t{16} << 10;        // of a request
  std::chrono::milliseconds request_time{10'000};          // to ask, and between two requests
  std::chrono::milliseconds stalled_time{30'000};          // a client takes nothing of its answer
  std::chrono::milliseconds asking_time{30'000};           // a run takes to tell its trace
  std::chrono::milliseconds update_time{100};              // between two events of a stream
  std::chrono::milliseconds comment_time{15'000};          // of silence on a stream
  std::size_t send_buffer_bytes = std::size_t{256} << 10;  // of the system, per connection
  // All different texts that are under way together, unless it is a single one; whoever takes
  // longest over his is cut off.
  std::size_t text_bytes = std::size_t{64} << 20;
};

}  // namespace troupe::telemetry
