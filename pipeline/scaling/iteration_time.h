#pragma once

// How long an iteration takes with any workers: the model of docs/performance.md.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "pipeline/steps/ring_rows.h"

namespace troupe::pipeline {

// Workers of equal speed.
struct Crew {
  std::uint32_t workers = 0;
  double speed = 0.0;  // micro-batches of an iteration that one of them gets through per second
  double share = 0.0;  // in proportion to which each gets micro-batches; 0: to its speed
};

// An iteration, whoever makes it.
struct IterationWork {
  std::uint32_t micro_batches = 1;
  // Bytes that members sum in each step of the schedule; empty: not known, and taken as nothing.
  std::vector<double> step_bytes{};
  double bucket_bytes = 1 << 20;
  std::uint32_t workers_per_member = 1;  // which share its place in the ring
  // Micro-batches are shared out by speed; else all workers get as many.
  bool by_speed = true;
  // Micro-batches of one logical worker, where the members of a site share them (steps/sites.h).
  std::uint32_t parts = 1;
  // Iterations that they make together for each of this one, and the bytes of their steps.
  std::uint32_t site_iterations = 1;
  std::vector<double> site_step_bytes{};
};

// A line from a member of the ring to the next, and how evenly members compute.
struct RingLine {
  double bytes_per_second = kLineBytesPerSecond;
  double message_seconds = kMessageSeconds;
  // Each byte is received, added and sent on by the member's processor, at this rate.
  double member_bytes_per_second = std::numeric_limits<double>::infinity();
  double deviation = 0.01;  // of a member's time, relative
};

// Seconds. Nothing of the sums is counted as hidden behind computing, so these are the most. Steps
// have to be applied besides, which takes any workers as long.
struct IterationTime {
  double computing = 0.0;  // of the crew that takes longest, by its mean
  double waiting = 0.0;    // for the slowest member
  double summing = 0.0;
  double all() const { return computing + waiting + summing; }
};

// Infinite without any worker that has a speed.
IterationTime iteration_time(const IterationWork& work, const RingLine& line,
                             std::span<const Crew> crews);

}  // namespace troupe::pipeline
