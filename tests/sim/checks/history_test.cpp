#include "tests/sim/history.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace troupe::sim {
namespace {

constexpr std::uint64_t kSeedsPerLot = 1000;

class Histories : public ::testing::TestWithParam<int> {};

TEST_P(Histories, EveryMessageArrivesOrComesBackAndEveryNodeEnds) {
  const auto lot = static_cast<std::uint64_t>(GetParam());
  for (std::uint64_t i = 0; i < kSeedsPerLot; ++i) {
    const std::uint64_t seed = lot * kSeedsPerLot + i;
    const HistoryEnd end = play_history(seed);
    ASSERT_TRUE(end.failures.empty()) << "sim --seed " << seed << ": " << end.failures.front();
  }
}

INSTANTIATE_TEST_SUITE_P(Lots, Histories, ::testing::Range(0, 8));

// Else the histories above would prove little.
TEST(History, SeedsBringEveryKindOfFate) {
  HistoryEnd sum;
  int undisturbed = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const HistoryEnd end = play_history(seed);
    sum.arrived += end.arrived;
    sum.came_back += end.came_back;
    sum.reconnections += end.reconnections;
    sum.parted += end.parted;
    undisturbed += end.reconnections == 0 && end.parted == 0 ? 1 : 0;
  }
  EXPECT_GT(sum.arrived, 1000);
  EXPECT_GT(sum.came_back, 50);
  EXPECT_GT(sum.reconnections, 10);
  EXPECT_GT(sum.parted, 10);
  EXPECT_GT(undisturbed, 10);
}

TEST(History, SameSeedIsTheSameRunLineByLine) {
  const auto trace_of = [](std::uint64_t seed) {
    std::string lines;
    (void)play_history(seed, [&](std::string_view line) { lines += std::string(line) + "\n"; });
    return lines;
  };
  for (const std::uint64_t seed : {1, 7, 23}) {
    const std::string first = trace_of(seed);
    EXPECT_GT(first.size(), 1000U);
    EXPECT_EQ(first, trace_of(seed)) << "seed " << seed;
  }
  EXPECT_NE(trace_of(1), trace_of(2));
}

}  // namespace
}  // namespace troupe::sim
