#include "pipeline/scaling/iteration_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace troupe::pipeline {
namespace {

IterationTime time_of(const IterationWork& work, const std::vector<Crew>& crews,
                      RingLine line = {.deviation = 0.0}) {
  return iteration_time(work, line, crews);
}

TEST(IterationTime, IsThatOfTheWorkerThatTakesLongest) {
  EXPECT_DOUBLE_EQ(time_of({.micro_batches = 8}, {{1, 2.0}}).all(), 4.0);
  EXPECT_DOUBLE_EQ(time_of({.micro_batches = 8}, {{4, 2.0}}).all(), 1.0);
  // Three workers: 3, 3 and 2 micro-batches.
  EXPECT_DOUBLE_EQ(time_of({.micro_batches = 8}, {{3, 2.0}}).all(), 1.5);
  // No more than there are micro-batches help.
  EXPECT_DOUBLE_EQ(time_of({.micro_batches = 8}, {{20, 2.0}}).all(), 0.5);
  EXPECT_TRUE(std::isinf(time_of({.micro_batches = 8}, {{0, 2.0}, {3, 0.0}}).all()));
}

TEST(IterationTime, SharesOutBySpeedWhereTheRunDoes) {
  const std::vector<Crew> two{{1, 3.0}, {1, 1.0}};
  EXPECT_DOUBLE_EQ(time_of({.micro_batches = 8}, two).all(), 2.0);
  EXPECT_DOUBLE_EQ(time_of({.micro_batches = 8, .by_speed = false}, two).all(), 4.0);
}

// bench/scaling_model.py --waiting, of the same steps: 1, 2, 64 and 1,024 members wait
// 0, 12.5, 30.8 and 60.3 ms for sums.
TEST(IterationTime, SumsAsTheModelOfTheBenchDoes) {
  IterationWork work{.micro_batches = 4096};
  for (const double elements : {73'000, 73'000, 873'000, 873'000}) {
    work.step_bytes.push_back(8.0 * elements);
  }
  const auto summing = [&](std::uint32_t members) {
    return time_of(work, {{members, 1.0}}).summing;
  };
  EXPECT_EQ(summing(1), 0.0);
  EXPECT_NEAR(summing(2), 0.0125, 1e-4);
  EXPECT_NEAR(summing(64), 0.0308, 1e-4);
  // Up to 15 members are one ring, as ring_rows() has it.
  EXPECT_GT(summing(15), summing(12));
  EXPECT_NEAR(summing(1024), 0.0603, 1e-4);
}

TEST(IterationTime, SumsNoFasterThanMembersGetThroughThem) {
  const IterationWork work{.micro_batches = 8, .step_bytes = {4e8}};
  RingLine line{.bytes_per_second = 1e9, .message_seconds = 0.0, .deviation = 0.0};
  const auto summing = [&] { return time_of(work, {{4, 1.0}}, line).summing; };
  // Six times a quarter of the bytes.
  EXPECT_NEAR(summing(), 6 * 1e8 / 1e9, 1e-9);
  line.member_bytes_per_second = 2e9;
  EXPECT_NEAR(summing(), 6 * 1e8 / 1e9, 1e-9);
  line.member_bytes_per_second = 2e8;
  EXPECT_NEAR(summing(), 6 * 1e8 / 2e8, 1e-9);
}

TEST(IterationTime, SumsOnceForAllWorkersOfAMember) {
  IterationWork work{.micro_batches = 64, .step_bytes = {1e8}};
  const auto summing = [&](std::uint32_t workers) {
    return time_of(work, {{workers, 1.0}}).summing;
  };
  const double of_two_members = summing(2);
  work.workers_per_member = 4;
  EXPECT_EQ(summing(4), 0.0);
  EXPECT_DOUBLE_EQ(summing(8), of_two_members);
}

// Two workers of four parts. Each makes ten iterations of two steps, whose sums are in the ring of
// its site: between n members 2 (n - 1) / n of the bytes go over each line.
TEST(IterationTime, SumsInEachIterationWithinASite) {
  IterationWork work{.micro_batches = 8, .step_bytes = {2e8}, .parts = 4};
  work.site_iterations = 10;
  work.site_step_bytes = {1e8, 3e8};
  const auto time = [&](std::uint32_t workers) {
    return time_of(work, {{workers, 1.0}},
                   {.bytes_per_second = 1e9, .message_seconds = 0.0, .deviation = 0.0});
  };
  EXPECT_NEAR(time(2).summing, 0.2, 1e-9) << "each site has one member";
  EXPECT_NEAR(time(4).summing, 0.3 + 10 * 0.4, 1e-9) << "two and two";
  EXPECT_NEAR(time(5).summing, 0.32 + 10 * 1.6 / 3, 1e-9) << "two and three";
  EXPECT_NEAR(time(3).computing, 4.0, 1e-9) << "one member has a worker to itself";
  work.workers_per_member = 2;
  EXPECT_NEAR(time(4).summing, 0.2, 1e-9) << "sites within a member";
  EXPECT_NEAR(time(8).summing, 0.3 + 10 * 0.4, 1e-9);
  // However many there are, a site is one ring.
  work = {.micro_batches = 128, .parts = 64, .site_step_bytes = {1e8}};
  EXPECT_NEAR(time(128).summing, 2 * 63 / 64.0 * 0.1, 1e-9);
}

// bench/scaling_model.py takes the quantile from its library: 1.298 s of computing and a deviation
// of 1 % make 7.7 ms with 2 members and 42.0 ms with 1,024.
TEST(IterationTime, WaitsForTheSlowest) {
  const auto waiting = [](std::uint32_t members) {
    const double speed = 4096.0 / members / 1.298;
    return time_of({.micro_batches = 4096}, {{members, speed}}, {.deviation = 0.01}).waiting;
  };
  EXPECT_NEAR(waiting(2), 0.0077, 1e-4);
  EXPECT_NEAR(waiting(1024), 0.0420, 1e-4);
}

}  // namespace
}  // namespace troupe::pipeline
