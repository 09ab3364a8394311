#include "pipeline/buckets.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace troupe::pipeline {

std::vector<Bucket> make_buckets(std::int64_t elements, std::int64_t segment_bytes) {
  const std::int64_t most = segment_bytes / static_cast<std::int64_t>(sizeof(std::int64_t));
  CHECK(elements >= 0 && most > 0, "a segment holds at least one element of 8 bytes");
  std::vector<Bucket> buckets;
  for (std::int64_t offset = 0; offset < elements; offset += most) {
    buckets.push_back({offset, std::min(most, elements - offset)});
  }
  std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

}  // namespace troupe::pipeline
