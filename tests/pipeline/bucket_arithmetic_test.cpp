#include "pipeline/steps/bucket_arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "pipeline/steps/ring_schedule.h"

namespace troupe::pipeline {
namespace {

using runtime::Buffer;

constexpr std::size_t kElements = 1000;
constexpr Bucket kBucket{0, kElements, SumKind::kFloat32};

Buffer floats_of(std::mt19937& random) {
  std::normal_distribution<float> normal;
  Buffer buffer = Buffer::allocate(kElements * sizeof(float));
  for (float& value : buffer.mutable_as<float>()) value = normal(random);
  return buffer;
}

// One bucket all the way round a ring; what each member uses of it.
std::vector<Buffer> reduce(std::vector<BucketArithmetic>& members,
                           const std::vector<Buffer>& parts) {
  const auto count = static_cast<std::uint32_t>(members.size());
  const std::uint32_t home = BucketRoutes(count).home_of(0);
  std::uint32_t at = (home + 1) % count;
  Buffer wire = members[at].add(0, kBucket, {}, parts[at]);
  while (at != home) {
    at = (at + 1) % count;
    wire = members[at].add(0, kBucket, {{wire}}, parts[at]);
  }
  std::vector<Buffer> sums;
  for (const BucketArithmetic& member : members) sums.push_back(member.sum_from(kBucket, wire));
  return sums;
}

bool same(const Buffer& a, const Buffer& b) { return std::ranges::equal(a.bytes(), b.bytes()); }

double relative_error(const Buffer& sum, const std::vector<Buffer>& parts) {
  double square = 0, difference = 0;
  for (std::size_t i = 0; i < kElements; ++i) {
    double exact = 0;
    for (const Buffer& part : parts) exact += static_cast<double>(part.as<float>()[i]);
    square += exact * exact;
    difference += std::pow(static_cast<double>(sum.as<float>()[i]) - exact, 2);
  }
  return std::sqrt(difference / square);
}

TEST(BucketArithmetic, AllMembersUseTheSameBitsInEveryFormat) {
  const std::pair<ReductionFormat, double> formats[] = {{ReductionFormat::kFp32, 1e-6},
                                                        {ReductionFormat::kBf16, 1e-2},
                                                        {ReductionFormat::kInt8, 3e-2}};
  for (const auto& [format, bound] : formats) {
    std::mt19937 random(1);
    std::vector<BucketArithmetic> members;
    std::vector<Buffer> parts;
    for (int i = 0; i < 5; ++i) {
      members.emplace_back(format, std::vector<std::size_t>{kElements});
      parts.push_back(floats_of(random));
    }
    const std::vector<Buffer> sums = reduce(members, parts);
    for (const Buffer& sum : sums) EXPECT_TRUE(same(sum, sums[0]));
    EXPECT_LT(relative_error(sums[0], parts), bound);
  }
}

TEST(BucketArithmetic, WhatIsMadeAgainIsTheSameAndWhatIsAppliedCorrectsTheNextStep) {
  std::mt19937 random(2);
  std::vector<BucketArithmetic> members;
  std::vector<Buffer> parts;
  for (int i = 0; i < 3; ++i) {
    members.emplace_back(ReductionFormat::kInt8, std::vector<std::size_t>{kElements});
    parts.push_back(floats_of(random));
  }
  const Buffer first = reduce(members, parts)[0];
  for (BucketArithmetic& member : members) member.close(0, false);
  const Buffer again = reduce(members, parts)[0];
  EXPECT_TRUE(same(again, first));
  // The mean over many steps of the same parts comes ever closer to their sum.
  std::vector<double> total(kElements);
  constexpr int kSteps = 50;
  for (int step = 0; step < kSteps; ++step) {
    for (BucketArithmetic& member : members) member.close(0, true);
    const Buffer sum = reduce(members, parts)[0];
    for (std::size_t i = 0; i < kElements; ++i) total[i] += static_cast<double>(sum.as<float>()[i]);
  }
  Buffer mean = Buffer::allocate(kElements * sizeof(float));
  for (std::size_t i = 0; i < kElements; ++i) {
    mean.mutable_as<float>()[i] = static_cast<float>(total[i] / kSteps);
  }
  EXPECT_LT(relative_error(mean, parts), relative_error(first, parts) / 10);
}

TEST(BucketArithmetic, IntegersAreAddedAsTheyAreInEveryFormat) {
  const Bucket bucket{0, 3};
  BucketArithmetic member(ReductionFormat::kInt8, {0});
  Buffer own = Buffer::allocate(24);
  own.mutable_as<std::int64_t>()[0] = INT64_MAX / 4;
  own.mutable_as<std::int64_t>()[1] = -1;
  own.mutable_as<std::int64_t>()[2] = (std::int64_t{1} << 61) + 1;
  const Buffer wire = member.add(0, bucket, {}, own);
  const Buffer sum = member.sum_from(bucket, member.add(0, bucket, {{wire}}, own));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sum.as<std::int64_t>()[i], 2 * own.as<std::int64_t>()[i]);
  }
}

TEST(BucketArithmetic, RoundedNumbersAreAddedIn16Bits) {
  const Bucket bucket{0, 3, SumKind::kInt16};
  BucketArithmetic member(std::nullopt, {0});
  Buffer own = Buffer::allocate(bucket.bytes());
  std::ranges::copy(std::vector<std::int16_t>{127, -127, 5},
                    own.mutable_as<std::int16_t>().begin());
  Buffer wire = member.add(0, bucket, {}, own);
  for (int i = 1; i < 256; ++i) wire = member.add(0, bucket, {{wire}}, own);
  const auto sum = member.sum_from(bucket, wire);
  EXPECT_EQ(sum.as<std::int16_t>()[0], 127 * 256);
  EXPECT_EQ(sum.as<std::int16_t>()[1], -127 * 256);
  EXPECT_EQ(sum.as<std::int16_t>()[2], 5 * 256);
  const std::vector<Buffer> parts{own, own, own};
  const Buffer of_node = BucketArithmetic::sum_of(parts, bucket.kind);
  EXPECT_EQ(of_node.as<std::int16_t>()[1], -381);
}

TEST(BucketArithmetic, ReplicasOfANodeAreAddedWithoutEncoding) {
  std::mt19937 random(3);
  const std::vector<Buffer> parts{floats_of(random), floats_of(random), floats_of(random)};
  const Buffer sum = BucketArithmetic::sum_of(parts, SumKind::kFloat32);
  EXPECT_LT(relative_error(sum, parts), 1e-6);
  EXPECT_TRUE(same(BucketArithmetic::sum_of({&parts[0], 1}, SumKind::kFloat32), parts[0]));
}

}  // namespace
}  // namespace troupe::pipeline
