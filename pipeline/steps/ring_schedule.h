#pragma once

// Which way a bucket takes through a ring of members. Position p sends to p + 1, the last one to
// position 0. A bucket is summed on its first way round: it begins at one position, every other
// adds its own part, and the last of them, the bucket's home, holds the sum. On its second way the
// sum goes on from home until all have it.
//
// Buckets have their homes in turn, so that all edges carry the same: of each bucket an edge
// carries two messages, but for the two edges that it need not cross twice. With N members and
// B buckets that is 2 (N - 1) / N of the bytes on every edge, which no all-reduce undercuts.
//
// Pure functions of integers: every member must find the same. `position` < `members`.

#include <cstdint>

namespace troupe::pipeline {

// Position that holds the sum of the bucket first.
std::uint32_t home_of(std::uint32_t bucket, std::uint32_t members);

// What one position does with a bucket. Alone in the ring it begins and completes it, and sends
// nothing.
struct RingRole {
  bool begins = false;      // sends its own part; no part comes to it. Others add theirs to one
  bool completes = false;   // it is home: after adding it has the sum
  bool passes_sum = false;  // sends the sum on, once it has it
  bool operator==(const RingRole&) const = default;
};
RingRole ring_role(std::uint32_t bucket, std::uint32_t position, std::uint32_t members);

// Headers go the way of this bucket, whatever its number is otherwise used for.
inline constexpr std::uint32_t kHeaderBucket = 0;

// Messages that cross the edge from `position` to the next for `buckets` buckets and one header.
std::int64_t ring_messages(std::uint32_t buckets, std::uint32_t position, std::uint32_t members);

}  // namespace troupe::pipeline
