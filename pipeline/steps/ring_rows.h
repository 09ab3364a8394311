#pragma once

// Whether the members of a View are one ring or a ring of rings (pipeline/steps/ring_schedule.h),
// and where its rows begin. Exact sums do not depend on it; sums in a lossy format do, as they do
// on the number of members.
//
// With x bytes to sum, rows of L members and R of them, buckets of b bytes, and lines of B bytes
// per second on which a message is d seconds under way, a step's sums take about
//
//   2 (L - 1) max(x / (L B), d + b / B) + 2 (R - 1) max(x / (L R B), d + b / B)
//
// which is that of one ring for R = 1. Where lines differ, the busiest one counts for bytes, and
// for messages the way of a bucket, which passes each line but one. Rows save messages where
// members are many, and bytes on slow lines: where rows are sites, members of each send their part
// of the sums to the other one, and not one of them all.
//
// Pure functions: every member finds the same. Any thread.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/steps/ring_order.h"

namespace troupe::pipeline {

// A line between two hosts of which nothing is said has this rate, or that of the fastest line that
// is named, if that is faster. A message is so long under way at least.
inline constexpr double kLineBytesPerSecond = 1.25e9;
inline constexpr double kMessageSeconds = 100e-6;

struct RingCosts {
  // The host of each member, by their numbers. Later members are alone on theirs, which have the
  // lines of one of these hosts, where it is known of which.
  std::vector<std::uint32_t> hosts{};
  std::map<std::uint32_t, std::uint32_t> lines_of_later{};
  // Between these, bits per second; kUnnamedBandwidth where nothing is said.
  HostBandwidths bandwidths{};
  // Between these, the seconds that a message is under way one way; empty: nothing is said.
  std::vector<std::vector<double>> delays{};
  double step_bytes = 0.0;        // that the largest step sums
  double bucket_bytes = 1 << 20;  // of the largest bucket
  // Rows that are not sites have so many members at least, and there are as many: fewer members
  // have too little to gain.
  std::uint32_t least = 4;

  // The host whose lines a member has, if that is known.
  std::optional<std::uint32_t> lines_of(std::uint32_t member) const;
};
inline constexpr std::uint64_t kUnnamedBandwidth = UINT64_MAX;

// For View::rows, of members in the order of their ring. One ring, unless the model finds a
// hundredth less time for one of these: hosts, or sites, between which the edges of the ring are
// the slow ones; or some rows of about one length, each of whole hosts.
std::vector<std::uint32_t> ring_rows(std::span<const std::uint32_t> ring, const RingCosts& costs);

// The members from behind the slowest line of their ring on, so that those of a site stand together
// where sites are what slow lines are between.
std::vector<std::uint32_t> site_order(std::span<const std::uint32_t> ring, const RingCosts& costs);

// The model's seconds for such rows.
double ring_seconds(std::span<const std::uint32_t> ring, const std::vector<std::uint32_t>& rows,
                    const RingCosts& costs);

// Rows of about one length for so many members, of whose hosts nothing is known; none for few.
std::vector<std::uint32_t> even_rows(std::uint32_t members, std::uint32_t rows);

}  // namespace troupe::pipeline
