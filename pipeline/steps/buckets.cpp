#include "pipeline/steps/buckets.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace troupe::pipeline {

namespace {

constexpr auto kIntegerBytes = static_cast<std::int64_t>(sizeof(std::int64_t));
constexpr auto kBlock = static_cast<std::int64_t>(kInt8Block);

std::int64_t divided_up(std::int64_t number, std::int64_t by) { return (number + by - 1) / by; }

// Units of every piece but the shortest one, when `units` are cut.
std::int64_t units_of_piece(std::int64_t units, std::int64_t unit_bytes, std::int64_t segment_bytes,
                            std::uint32_t members) {
  CHECK(units >= 0 && members > 0, "somebody makes a sum");
  const std::int64_t most = std::max<std::int64_t>(segment_bytes / unit_bytes, 1);
  if (members == 1 || units == 0) return most;
  // As few rounds as the largest piece allows, then pieces of equal size in them: every member is
  // home of the same number of buckets, so all edges of the ring carry the same.
  const std::int64_t rounds = divided_up(units, most * members);
  const std::int64_t even = divided_up(units, rounds * members);
  return std::min(most, std::max(even, kLeastBucketBytes / unit_bytes));
}

std::int64_t integers_of_piece(std::int64_t elements, std::int64_t segment_bytes,
                               std::uint32_t members) {
  CHECK(segment_bytes >= kIntegerBytes, "a segment holds at least one element of 8 bytes");
  return units_of_piece(elements, kIntegerBytes, segment_bytes, members);
}

// Appends [first, end), cut into pieces from `first` on, the last one first.
void cut(std::int64_t first, std::int64_t end, std::int64_t size, SumKind kind,
         std::vector<Bucket>& buckets) {
  const std::int64_t pieces = divided_up(end - first, size);
  for (std::int64_t i = pieces - 1; i >= 0; --i) {
    const std::int64_t offset = first + i * size;
    buckets.push_back({offset, std::min(size, end - offset), kind});
  }
}

}  // namespace

std::vector<Bucket> make_buckets(std::int64_t elements, std::int64_t segment_bytes,
                                 std::uint32_t members) {
  return make_buckets(SumLayout{elements, {}}, segment_bytes, members);
}

std::vector<Bucket> make_buckets(const SumLayout& sums, std::int64_t segment_bytes,
                                 std::uint32_t members) {
  const auto& [front, kind] = sums.front;
  const std::int64_t blocks = divided_up(front, kBlock);
  const std::int64_t block_bytes = kBlock * static_cast<std::int64_t>(bytes_of(kind));
  std::vector<Bucket> buckets;
  cut(front, sums.elements, integers_of_piece(sums.elements - front, segment_bytes, members),
      SumKind::kInt64, buckets);
  cut(0, front, kBlock * units_of_piece(blocks, block_bytes, segment_bytes, members), kind,
      buckets);
  return buckets;
}

std::int64_t count_buckets(std::int64_t elements, std::int64_t segment_bytes,
                           std::uint32_t members) {
  return divided_up(elements, integers_of_piece(elements, segment_bytes, members));
}

}  // namespace troupe::pipeline
