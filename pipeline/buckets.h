#pragma once

// How a contribution vector is cut into buckets, the units a reduction sends.

#include <cstdint>
#include <vector>

namespace troupe::pipeline {

// Elements [offset, offset + size) of a contribution vector.
struct Bucket {
  std::int64_t offset = 0;
  std::int64_t size = 0;
  bool operator==(const Bucket&) const = default;
};

// Cuts `elements` integers of 8 bytes at every multiple of segment_bytes / 8 and lists the pieces
// from the end of the vector to its front: the order in which they are ready, since losses and
// statistics stand behind the weights and backward reaches the weights from the last layer. Every
// element is in exactly one bucket; the first one listed is the shortest. Cuts fall inside tensors
// as they come; sums do not depend on them. CHECKs that segment_bytes >= 8.
std::vector<Bucket> make_buckets(std::int64_t elements, std::int64_t segment_bytes);

}  // namespace troupe::pipeline
