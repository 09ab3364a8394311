// Whether a loss still falls when its gradients are summed in a lossy format: stochastic gradient
// descent by three members, with error feedback and without.

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "pipeline/steps/bucket_arithmetic.h"
#include "pipeline/steps/ring_schedule.h"
#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

using runtime::Buffer;

constexpr std::uint32_t kMembers = 3;
constexpr std::size_t kUnknowns = 2 * kInt8Block;
constexpr Bucket kAllUnknowns{0, kUnknowns, SumKind::kFloat32};
constexpr std::size_t kSteep = 8;  // elements of each block
constexpr float kRate = 0.1F;
constexpr std::uint32_t kSteps = 6000;

// sum of h / 2 (x - 1)^2 over elements: in each block of the format some steep directions, whose
// gradients every member measures with noise, and flat ones beside them, whose gradients are
// smaller than half a unit of a byte where the largest is 127 of them.
bool is_steep(std::size_t element) { return element % kInt8Block < kSteep; }
float curvature(std::size_t element) { return is_steep(element) ? 1.0F : 0.01F; }

double loss(const std::vector<float>& x) {
  double sum = 0;
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    const double distance = static_cast<double>(x[i]) - 1.0;
    sum += 0.5 * static_cast<double>(curvature(i)) * distance * distance;
  }
  return sum;
}

Buffer gradient(const std::vector<float>& x, std::uint32_t step, std::uint32_t member) {
  Buffer buffer = Buffer::allocate(kUnknowns * sizeof(float));
  const auto values = buffer.mutable_as<float>();
  std::array<float, 2 * kSteep> noise;
  runtime::fill_normal({.seed = 3, .micro_batch = member, .iteration = step}, noise.data(),
                       noise.size());
  for (std::size_t i = 0, steep = 0; i < kUnknowns; ++i) {
    values[i] = curvature(i) * (x[i] - 1.0F);
    if (is_steep(i)) values[i] += 2.0F * noise[steep++];
  }
  return buffer;
}

// Once round the ring, and what all members use of it.
Buffer total_of(std::vector<BucketArithmetic>& members, const std::vector<Buffer>& parts) {
  const std::uint32_t home = BucketRoutes(kMembers).home_of(0);
  std::uint32_t at = (home + 1) % kMembers;
  Buffer wire = members[at].add(0, kAllUnknowns, {}, parts[at]);
  while (at != home) {
    at = (at + 1) % kMembers;
    wire = members[at].add(0, kAllUnknowns, {{wire}}, parts[at]);
  }
  for (BucketArithmetic& member : members) member.close(0, true);
  return members[home].sum_from(kAllUnknowns, wire);
}

std::vector<BucketArithmetic> ring(ReductionFormat format) {
  return {kMembers, BucketArithmetic(format, {kUnknowns})};
}

// Mean over the last steps. Members that are made anew at every step have nothing left over.
double final_loss(ReductionFormat format, bool with_feedback) {
  constexpr std::uint32_t kLast = 500;
  std::vector<float> x(kUnknowns, 0.0F);
  std::vector<BucketArithmetic> members = ring(format);
  double sum = 0;
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    if (!with_feedback) members = ring(format);
    std::vector<Buffer> parts;
    for (std::uint32_t member = 0; member < kMembers; ++member) {
      parts.push_back(gradient(x, step, member));
    }
    const Buffer total = total_of(members, parts);
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      x[i] -= kRate / kMembers * total.as<float>()[i];
    }
    if (step >= kSteps - kLast) sum += loss(x) / kLast;
  }
  return sum;
}

TEST(LossyDescent, ReachesTheLossOfFullFloatsInEveryFormat) {
  const double full = final_loss(ReductionFormat::kFp32, true);
  EXPECT_LT(full, loss(std::vector<float>(kUnknowns, 0.0F)) / 5) << "it has fallen";
  EXPECT_NEAR(final_loss(ReductionFormat::kBf16, true), full, 0.05 * full);
  EXPECT_NEAR(final_loss(ReductionFormat::kInt8, true), full, 0.05 * full);
}

TEST(LossyDescent, StallsInInt8WithoutErrorFeedback) {
  EXPECT_GT(final_loss(ReductionFormat::kInt8, false),
            2.5 * final_loss(ReductionFormat::kInt8, true));
}

}  // namespace
}  // namespace troupe::pipeline
