#pragma once

// Our side of bench_training, in a process of its own: the same requests as training_peer.py.

#include <cstdint>
#include <string>

#include "model/backend.h"

namespace troupe::bench {

// Answers the requests on standard input until it ends, a line each:
//   check N   "ok step/term=loss ...": one iteration on one micro-batch of N events, two of a task
//             whose schedule has one step
//   hash      "ok HASH": of the state after one iteration from the start
//   time N    "ok WALL PROCESSOR": seconds of N iterations
//   peak      "ok KIB": the largest resident size so far
// An optimiser step is `events` events in micro-batches of half of them (of all when odd), computed
// on `threads` threads; in fp32 by the fastest kernels, in bf16 by those that have it. Returns the
// exit code.
int answer_training_requests(const std::string& model, int threads, std::uint32_t events,
                             model::Precision precision);

}  // namespace troupe::bench
