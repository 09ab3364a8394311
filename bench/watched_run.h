#pragma once

// A training in this process, watched by everything that can watch one, or by nothing but
// metrics.jsonl; or beset besides.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/hash.h"

namespace troupe::bench {

struct WatchedRunRequest {
  std::string model = "gan3d_12";
  std::uint64_t iterations = 20;
  bool watched = false;
  // When watched: numbers a second that an actor tells the Monitor besides.
  int samples_per_second = 10'000;
  int clients = 3;  // that follow the page
  // When watched, besides: 200 clients that follow the page and never read, 10,000 connections of
  // random bytes, and a disk that is full.
  bool beset = false;
};

struct WatchedRunEnd {
  runtime::Hash128 state_hash;
  double events_per_second = 0.0;
  double core_seconds = 0.0;  // of the process, from the first actor's start to the last one's end
  // Share of them that the Monitor took, and where it is watched the page's server, the actor
  // that tells numbers, and ZeroMQ at both ends of the stream.
  double telling = 0.0;
  // For a watched one.
  std::vector<double> latencies;  // seconds from a line's time to a client that has it
  std::uint64_t updates = 0;      // events of streams, all clients together
  std::uint64_t published = 0;    // messages that a subscriber got
  std::uint64_t samples = 0;      // numbers told by the actor besides
  std::uint64_t dropped = 0;      // messages of metrics that found no room
  std::uint64_t event_file_bytes = 0;
  std::uint64_t garbage = 0;        // connections of random bytes made while it trained
  std::int64_t resident_bytes = 0;  // of the process when it had ended
};

// In a folder of its own that is removed afterwards. CHECKs that it ends well.
WatchedRunEnd run_watched(const WatchedRunRequest& request);

}  // namespace troupe::bench
