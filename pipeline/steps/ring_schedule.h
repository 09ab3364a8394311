#pragma once

// The way of a bucket through a ring of members. Position p sends to p + 1, the last one to
// position 0. A bucket is summed on its first way round: it begins at one position, every other
// adds its own part, and the last of them, the bucket's home, holds the sum. On its second way the
// sum goes on from home until all have it.
//
// Positions take turns as homes, so that all edges carry the same. A bucket crosses each edge
// twice, except two edges, which it crosses once. With N members and B buckets that is 2 (N - 1) /
// N of the bytes on every edge, which no all-reduce undercuts.
//
// Pure functions of integers: every member must find the same. `position` < `members`.

#include <cstdint>

namespace troupe::pipeline {

// The position that is first to hold the bucket's sum.
std::uint32_t home_of(std::uint32_t bucket, std::uint32_t members);

// The work of one position on a bucket. A position alone in the ring begins and completes the
// bucket, and sends nothing.
struct RingRole {
  bool begins = false;      // sends its own part; no part comes to it. Others add theirs to one
  bool completes = false;   // it is home: after adding it has the sum
  bool passes_sum = false;  // sends the sum on, once it has it
  bool operator==(const RingRole&) const = default;
};
RingRole ring_role(std::uint32_t bucket, std::uint32_t position, std::uint32_t members);

// Headers go the way of this bucket.
inline constexpr std::uint32_t kHeaderBucket = 0;

// Messages that cross the edge from `position` to the next for `buckets` buckets and one header.
std::int64_t ring_messages(std::uint32_t buckets, std::uint32_t position, std::uint32_t members);

}  // namespace troupe::pipeline
