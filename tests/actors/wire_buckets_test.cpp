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
    const RingBucket body{{1, 0, 3, 100, 400, pipeline::SumKind::kFloat32}, true, format};
    const auto back = round_trip(body, {Buffer::zeroed(bytes)});
    EXPECT_EQ(back.bucket.kind, pipeline::SumKind::kFloat32);
    EXPECT_EQ(back.format, format);
    EXPECT_NE(problem_of(parts_of(body, {Buffer::zeroed(bytes + 8)})), "");
    EXPECT_NE(problem_of(parts_of(body, {Buffer::zeroed(300 * 8)})), "");
  }
}

TEST(WireBuckets, OfRoundedNumbersTakeTwoBytesEach) {
  const RingBucket body{{1, 0, 3, 100, 400, pipeline::SumKind::kInt16}, true, std::nullopt};
  const auto back = round_trip(body, {Buffer::zeroed(600)});
  EXPECT_EQ(back.bucket.kind, pipeline::SumKind::kInt16);
  EXPECT_FALSE(back.format);
  for (const std::size_t bytes : {300U, 598U, 601U, 1200U, 2400U}) {
    EXPECT_NE(problem_of(parts_of(body, {Buffer::zeroed(bytes)})), "") << bytes;
  }
}

TEST(WireBuckets, OfAFormatAndAnotherKindAreRefused) {
  using pipeline::SumKind;
  const auto format = pipeline::ReductionFormat::kFp32;
  const auto refused = [](SumKind kind, std::optional<pipeline::ReductionFormat> in) {
    return !problem_of(parts_of(RingBucket{{1, 0, 3, 0, 2, kind}, true, in}, {Buffer::zeroed(8)}))
                .empty();
  };
  EXPECT_FALSE(refused(SumKind::kFloat32, format));
  EXPECT_TRUE(refused(SumKind::kFloat32, std::nullopt));
  EXPECT_TRUE(refused(SumKind::kInt16, format));
  EXPECT_TRUE(refused(SumKind::kInt64, format));
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
