#include "pipeline/steps/buckets.h"

#include <gtest/gtest.h>

namespace troupe::pipeline {
namespace {

TEST(Buckets, GoFromTheEndToTheFront) {
  EXPECT_EQ(make_buckets(10, 32), (std::vector<Bucket>{{8, 2}, {4, 4}, {0, 4}}));
  EXPECT_EQ(make_buckets(8, 32), (std::vector<Bucket>{{4, 4}, {0, 4}}));
  EXPECT_EQ(make_buckets(3, 1 << 20), (std::vector<Bucket>{{0, 3}}));
  EXPECT_EQ(make_buckets(0, 64), std::vector<Bucket>{});
}

TEST(Buckets, HoldEveryElementOnceAndNoMoreThanASegment) {
  for (const std::int64_t elements : {1, 7, 63, 64, 65, 1000, 87'415}) {
    for (const std::int64_t segment_bytes : {8, 15, 24, 512, 4096, 1 << 18}) {
      std::int64_t end = elements;
      for (const Bucket& bucket : make_buckets(elements, segment_bytes)) {
        EXPECT_EQ(bucket.offset + bucket.size, end);
        EXPECT_GT(bucket.size, 0);
        EXPECT_LE(bucket.size * 8, segment_bytes);
        end = bucket.offset;
      }
      EXPECT_EQ(end, 0) << elements << " in " << segment_bytes;
    }
  }
}

TEST(Buckets, OfARingGiveEveryMemberAsManyHomes) {
  for (const std::uint32_t members : {2U, 3U, 8U, 64U}) {
    for (const std::int64_t elements : {100'000, 1'000'003, 5'000'000}) {
      const auto buckets = make_buckets(elements, 1 << 20, members);
      ASSERT_EQ(count_buckets(elements, 1 << 20, members),
                static_cast<std::int64_t>(buckets.size()));
      std::int64_t sum = 0;
      for (const Bucket& bucket : buckets) {
        EXPECT_LE(bucket.size * 8, 1 << 20);
        sum += bucket.size;
      }
      EXPECT_EQ(sum, elements);
      if (elements * 8 < kLeastBucketBytes * members) continue;
      EXPECT_EQ(buckets.size() % members, 0) << elements << " over " << members;
      EXPECT_GT(buckets.front().size, buckets.back().size / 2) << elements << " over " << members;
    }
  }
}

TEST(Buckets, OfARingAreNotCutSmallerThanIsWorthAMessage) {
  EXPECT_EQ(make_buckets(100, 1 << 20, 64).size(), 1);
  EXPECT_EQ(make_buckets(512, 1 << 20, 64).size(), 1);
  EXPECT_EQ(make_buckets(513, 1 << 20, 64).size(), 2);
  EXPECT_EQ(make_buckets(512, 800, 4).size(), 6);
  EXPECT_EQ(count_buckets(0, 1 << 20, 3), 0);
}

TEST(BucketsDeathTest, SegmentBelowOneElementBreaksAnInvariant) {
  EXPECT_DEATH(make_buckets(4, 7), "at least one element");
}

}  // namespace
}  // namespace troupe::pipeline
