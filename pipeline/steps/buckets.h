#pragma once

// How a contribution vector is cut into buckets, the units a reduction sends.

#include <cstdint>
#include <vector>

#include "pipeline/steps/reduction_format.h"
#include "pipeline/steps/sum_layout.h"

namespace troupe::pipeline {

// A ring does not cut smaller pieces than this.
inline constexpr std::int64_t kLeastBucketBytes = 4096;

// Cuts `elements` integers of 8 bytes into pieces of one size and a shorter one, at most
// segment_bytes each, and lists them from the end of the vector to its front. The backward pass
// makes them in this order: it reaches the weights from the last layer, and losses and statistics
// stand behind the weights. Every element is in exactly one bucket; the first one listed is the
// shortest. Cuts fall inside tensors as they come; sums do not depend on them.
//
// For a ring of several members the pieces are small enough that every member is home of as many
// (pipeline/steps/ring_schedule.h), but of kLeastBucketBytes at least. CHECKs that segment_bytes
// >= 8.
std::vector<Bucket> make_buckets(std::int64_t elements, std::int64_t segment_bytes,
                                 std::uint32_t members = 1);

// The same for sums as they stand in memory: 64-bit integers as above, then those in front of them,
// cut at multiples of kInt8Block elements. No bucket has two kinds.
std::vector<Bucket> make_buckets(const SumLayout& sums, std::int64_t segment_bytes,
                                 std::uint32_t members = 1);

// Number of buckets of integers.
std::int64_t count_buckets(std::int64_t elements, std::int64_t segment_bytes,
                           std::uint32_t members = 1);

}  // namespace troupe::pipeline
