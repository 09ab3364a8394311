#include "pipeline/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <vector>

#include "pipeline/micro_batch.h"
#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

using testing::ElementsAre;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Balance, GivesTheFastMoreWhenThatIsWorthwhile) {
  const auto better = balance(std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1},
                              std::vector<std::uint64_t>{1, 1}, {10.0, 20.0}, {true, true});
  ASSERT_TRUE(better);
  EXPECT_DOUBLE_EQ(better->seconds_now, 0.3);
  EXPECT_DOUBLE_EQ(better->seconds_then, 0.2);
  EXPECT_THAT(better->weights, ElementsAre(667, 1333));
  EXPECT_THAT(micro_batch_quotas(6, better->weights), ElementsAre(2, 4));
}

TEST(Balance, LeavesAloneWhatWouldGainLittle) {
  const std::vector<std::uint32_t> owners{0, 0, 0, 1, 1, 1};
  const std::vector<std::uint64_t> weights{1, 1};
  EXPECT_FALSE(balance(owners, weights, {10.0, 10.0}, {true, true}));
  EXPECT_FALSE(balance(owners, weights, {10.0, 13.0}, {true, true})) << "4 would take 0.308 s";
  EXPECT_FALSE(balance(owners, weights, {10.0, 14.0}, {true, true})) << "0.286 s: under a tenth";
  EXPECT_TRUE(balance(owners, weights, {10.0, 15.0}, {true, true})) << "0.267 s";
}

TEST(Balance, WaitsUntilAllThatOwnSomethingAreMeasured) {
  const std::vector<std::uint32_t> owners{0, 0, 1, 1};
  const std::vector<std::uint64_t> weights{1, 1, 1};
  EXPECT_FALSE(balance(owners, weights, {10.0, 0.0, 40.0}, {true, true, true}));
  EXPECT_FALSE(balance(owners, weights, {0.0, 0.0, 0.0}, {true, true, true}));
  EXPECT_FALSE(balance(owners, weights, {10.0, kInfinity, 0.0}, {true, true, true}));
  EXPECT_FALSE(balance(owners, weights, {10.0, -1.0, 0.0}, {true, true, true}));
}

TEST(Balance, OneThatWasNotMeasuredCountsAsTheMeanAndAWeightOfZeroStays) {
  const auto better = balance(std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1, 1, 1},
                              std::vector<std::uint64_t>{1, 1, 1, 0}, {10.0, 30.0, 0.0, 0.0},
                              {true, true, true, true});
  ASSERT_TRUE(better);
  EXPECT_THAT(better->weights, ElementsAre(500, 1500, 1000, 0));
}

TEST(Balance, ThoseThatAreGoneGetNothingAndCountAsTheMean) {
  const auto better =
      balance(std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1}, std::vector<std::uint64_t>{1, 1, 1},
              {10.0, 30.0, 500.0}, {true, true, false});
  ASSERT_TRUE(better);
  EXPECT_THAT(better->weights, ElementsAre(500, 1500, 1000));
  EXPECT_DOUBLE_EQ(better->seconds_then, 0.2);
}

// By its own account, and it does not ask for the same again.
TEST(Balance, IsNeverWorseThanBeforeAndSettlesAtOnce) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const auto draw = [&](std::uint64_t i) { return runtime::random_uniform({.seed = seed}, i); };
    const std::size_t replicas = 1 + static_cast<std::size_t>(draw(0) * 7);
    const auto count = static_cast<std::uint32_t>(1 + draw(1) * 40);
    std::vector<std::uint32_t> owners;
    for (std::uint32_t i = 0; i < count; ++i) {
      owners.push_back(static_cast<std::uint32_t>(draw(10 + i) * static_cast<double>(replicas)));
    }
    Speeds speeds;
    for (std::size_t i = 0; i < replicas; ++i) speeds.push_back(0.1 + 100 * draw(100 + i));
    const std::vector<std::uint64_t> weights(replicas, 1);
    const std::vector<bool> present(replicas, true);
    const auto better = balance(owners, weights, speeds, present);
    if (!better) continue;
    ASSERT_LE(better->seconds_then, (1 - kWorthwhileGain) * better->seconds_now) << seed;
    const auto anew = assign_micro_batches(count, better->weights);
    ASSERT_FALSE(balance(anew, better->weights, speeds, present)) << seed;
  }
}

}  // namespace
}  // namespace troupe::pipeline
