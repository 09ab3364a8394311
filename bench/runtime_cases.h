#pragma once

// The message patterns that bench_runtime times, on Troupe, on CAF and on ZeroMQ.

#include <cstdint>
#include <string>

namespace troupe::bench {

struct RuntimeCase {
  enum class Pattern : std::uint8_t {
    kOneToOne,  // one sender, one receiver
    kFanIn,     // ten senders, one receiver
    kPingPong,  // two actors that answer each other; a turn is a ping and its pong
  };
  Pattern pattern;
  int threads;            // of the scheduler; ZeroMQ has one per sender and one for the receiver
  std::int64_t messages;  // in all; turns for kPingPong
};

inline constexpr int kFanInSenders = 10;

// What a run measured, from the first send to the last receive. `complaint` is empty when every
// message arrived once, in order per sender and with the content sent.
struct RuntimeRun {
  double seconds = 0;
  std::string complaint;
};

RuntimeRun run_on_troupe(const RuntimeCase& run);
// Only linked where CAF was found.
RuntimeRun run_on_caf(const RuntimeCase& run);
// inproc sockets used directly: messages of 16 bytes copied, or sent from where they stand.
RuntimeRun run_on_zmq_copying(const RuntimeCase& run);
RuntimeRun run_on_zmq_sharing(const RuntimeCase& run);

}  // namespace troupe::bench
