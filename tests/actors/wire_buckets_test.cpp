#include <gtest/gtest.h>

#include "actors/message_fields.h"
#include "tests/actors/wire_parts.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;

Parts bucket(std::int64_t begin, std::int64_t end, std::size_t bytes) {
  return parts_of(RingBucket{{3, 0, 1, begin, end}, false, std::nullopt}, {Buffer::zeroed(bytes)});
}

TEST(WireBuckets, OfFloatsComeInTheirFormat) {
  using pipeline::ReductionFormat;
  for (const auto format :
       {ReductionFormat::kFp32, ReductionFormat::kBf16, ReductionFormat::kInt8}) {
    const std::size_t bytes = pipeline::encoded_bytes(format, 300);
    const RingBucket body{{1, 0, 3, 100, 400, true}, true, format};
    const auto back = round_trip(body, {Buffer::zeroed(bytes)});
    EXPECT_TRUE(back.bucket.floats);
    EXPECT_EQ(back.format, format);
    EXPECT_NE(problem_of(parts_of(body, {Buffer::zeroed(bytes + 8)})), "");
    EXPECT_NE(problem_of(parts_of(body, {Buffer::zeroed(300 * 8)})), "");
  }
}

TEST(WireBuckets, WithoutTheirElementsAreRefused) {
  EXPECT_EQ(problem_of(bucket(0, 2, 16)), "");
  EXPECT_NE(problem_of(bucket(0, 2, 15)), "");
  EXPECT_NE(problem_of(bucket(0, 2, 24)), "");
  EXPECT_NE(problem_of(bucket(2, 2, 0)), "");
  EXPECT_NE(problem_of(bucket(3, 2, 8)), "");
  EXPECT_NE(problem_of(bucket(-1, 1, 16)), "");
  EXPECT_NE(problem_of(bucket(kMostElements, kMostElements + 1, 8)), "");
  Parts without = bucket(0, 2, 16);
  without.payloads.clear();
  EXPECT_NE(problem_of(without), "");
  Parts twice = bucket(0, 2, 16);
  twice.payloads.push_back(twice.payloads.front());
  EXPECT_NE(problem_of(twice), "");
  EXPECT_NE(problem_of(parts_of(RingBucket{{3, 0, kMostBuckets, 0, 1}, false, std::nullopt},
                                {Buffer::zeroed(8)})),
            "");
}

TEST(WireBuckets, OfMisalignedElementsAreRefused) {
  Parts parts = bucket(0, 2, 16);
  parts.payloads = {Buffer::zeroed(17).slice(1, 16)};
  EXPECT_NE(problem_of(parts), "");
}

}  // namespace
}  // namespace troupe::actors
