#include "pipeline/steps/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "pipeline/steps/micro_batch.h"
#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::Le;

TEST(Balance, GivesTheFastMoreWhenThatIsWorthwhile) {
  const auto better = balance(std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1},
                              std::vector<std::uint64_t>{1, 1}, {10.0, 20.0}, {0, 1});
  ASSERT_TRUE(better);
  EXPECT_DOUBLE_EQ(better->seconds_now, 0.3);
  EXPECT_DOUBLE_EQ(better->seconds_then, 0.2);
  EXPECT_THAT(better->weights, ElementsAre(667, 1333));
  EXPECT_THAT(micro_batch_quotas(6, better->weights), ElementsAre(2, 4));
}

TEST(Balance, LeavesAloneWhatWouldGainLittle) {
  const std::vector<std::uint32_t> owners{0, 0, 0, 1, 1, 1};
  const std::vector<std::uint64_t> weights{1, 1};
  EXPECT_FALSE(balance(owners, weights, {10.0, 10.0}, {0, 1}));
  EXPECT_FALSE(balance(owners, weights, {10.0, 13.0}, {0, 1})) << "4 would take 0.308 s";
  EXPECT_FALSE(balance(owners, weights, {10.0, 14.0}, {0, 1})) << "0.286 s: under a tenth";
  EXPECT_TRUE(balance(owners, weights, {10.0, 15.0}, {0, 1})) << "0.267 s";
}

TEST(Balance, WaitsUntilAllThatOwnSomethingAreMeasured) {
  const std::vector<std::uint32_t> owners{0, 0, 1, 1};
  const std::vector<std::uint64_t> weights{1, 1, 1};
  EXPECT_FALSE(balance(owners, weights, {10.0, 0.0, 40.0}, {0, 1, 2}));
  EXPECT_FALSE(balance(owners, weights, {0.0, 0.0, 0.0}, {0, 1, 2}));
  EXPECT_FALSE(
      balance(owners, weights, {10.0, std::numeric_limits<double>::infinity(), 0.0}, {0, 1, 2}));
  EXPECT_FALSE(balance(owners, weights, {10.0, -1.0, 0.0}, {0, 1, 2}));
}

TEST(Balance, OneThatWasNotMeasuredCountsAsTheMeanAndAWeightOfZeroStays) {
  const auto better =
      balance(std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1, 1, 1},
              std::vector<std::uint64_t>{1, 1, 1, 0}, {10.0, 30.0, 0.0, 0.0}, {0, 1, 2, 3});
  ASSERT_TRUE(better);
  EXPECT_THAT(better->weights, ElementsAre(500, 1500, 1000, 0));
}

TEST(Balance, ThoseThatAreGoneGetNothingAndCountAsTheMean) {
  const auto better = balance(std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1},
                              std::vector<std::uint64_t>{1, 1, 1}, {10.0, 30.0, 500.0}, {0, 1});
  ASSERT_TRUE(better);
  EXPECT_THAT(better->weights, ElementsAre(500, 1500, 1000));
  EXPECT_DOUBLE_EQ(better->seconds_then, 0.2);
}

TEST(Balance, LeavesAloneWhatWouldGainAMoment) {
  const std::vector<std::uint32_t> owners{0, 0, 0, 1, 1, 1};
  const std::vector<std::uint64_t> weights{1, 1};
  EXPECT_FALSE(balance(owners, weights, {500.0, 1000.0}, {0, 1})) << "2 ms of 6";
  EXPECT_TRUE(balance(owners, weights, {150.0, 300.0}, {0, 1})) << "6.7 ms of 20";
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
    std::vector<std::uint32_t> present(replicas);
    std::iota(present.begin(), present.end(), 0);
    const auto better = balance(owners, weights, speeds, present);
    if (!better) continue;
    ASSERT_LE(better->seconds_then, (1 - WorthwhileGain{}.share) * better->seconds_now) << seed;
    const auto anew = assign_micro_batches(count, better->weights);
    ASSERT_FALSE(balance(anew, better->weights, speeds, present)) << seed;
  }
}

// Two replicas that own three micro-batches each, until they are shared out anew.
class TwoReplicas : public testing::Test {
 protected:
  // Both tell of a round; how many micro-batches the first owns from then on if that changes.
  std::optional<int> round(double speed, double other) {
    balancer_.measure(0, 100, 100 / speed);
    EXPECT_FALSE(balancer_.judge(owners_, weights_, {0, 1}));
    balancer_.measure(1, 100, 100 / other);
    auto better = balancer_.judge(owners_, weights_, {0, 1});
    if (!better) return std::nullopt;
    owners_ = better->owners;
    weights_ = better->weights;
    return static_cast<int>(std::ranges::count(owners_, 0U));
  }

  Balancer balancer_{2};
  std::vector<std::uint32_t> owners_{0, 0, 0, 1, 1, 1};
  std::vector<std::uint64_t> weights_{1, 1};
};

TEST_F(TwoReplicas, WorkMovesWhenThreeRoundsInARowSpeakForIt) {
  EXPECT_EQ(round(10, 20), std::nullopt);
  EXPECT_EQ(round(10, 20), std::nullopt);
  EXPECT_EQ(round(10, 10), std::nullopt) << "the evidence begins anew";
  EXPECT_EQ(round(10, 20), std::nullopt);
  EXPECT_EQ(round(10, 20), std::nullopt);
  EXPECT_EQ(round(10, 20), 2);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(round(10, 20), std::nullopt);
}

TEST_F(TwoReplicas, WorkMovesByTheMeanOfTheRounds) {
  round(10, 22);
  round(10, 22);
  EXPECT_EQ(round(10, 27), 2) << "the last round alone would leave it 1";
}

// 3 micro-batches of 10 take 0.3 s, and 2 would take 0.2 s, but the other's speed is uncertain.
TEST_F(TwoReplicas, WorkMovesLaterWhereRoundsDifferMuch) {
  int rounds = 0;
  while (!round(10, rounds % 2 == 0 ? 15 : 30)) ASSERT_LT(++rounds, 50);
  EXPECT_THAT(rounds, AllOf(Ge(5), Le(20)));
}

// Some of equal members are always the slowest by chance.
TEST(Balancer, ManyEqualReplicasWhoseTimesVaryKeepTheirShares) {
  constexpr std::uint32_t kReplicas = 512, kEach = 32;
  std::vector<std::uint32_t> owners;
  for (std::uint32_t i = 0; i < kReplicas * kEach; ++i) owners.push_back(i % kReplicas);
  const std::vector<std::uint64_t> weights(kReplicas, 1);
  std::vector<std::uint32_t> present(kReplicas);
  std::iota(present.begin(), present.end(), 0);
  Balancer balancer(kReplicas);
  std::mt19937 dice(1);
  std::normal_distribution<double> seconds(1.0, 0.07);
  for (int round = 0; round < 30; ++round) {
    for (std::uint32_t i = 0; i < kReplicas; ++i) {
      balancer.measure(i, 2 * kEach, std::max(0.1, seconds(dice)));
    }
    ASSERT_FALSE(balancer.judge(owners, weights, present)) << round;
  }
}

TEST_F(TwoReplicas, SpeedsThatChangeFromRoundToRoundMoveNothing) {
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(round(i % 3 == 0 ? 20 : 10, i % 3 == 0 ? 10 : 20), std::nullopt);
  }
}

TEST_F(TwoReplicas, WorkMovesBackForTwiceTheGainOnly) {
  for (int i = 0; i < 3; ++i) round(10, 20);
  ASSERT_THAT(micro_batch_quotas(6, weights_), ElementsAre(2, 4));
  // 4 micro-batches take 0.333 s, 3 would take 0.273 s: 18 % less.
  for (int i = 0; i < 10; ++i) EXPECT_EQ(round(11, 12), std::nullopt);
  for (int i = 0; i < 2; ++i) round(12, 12);
  EXPECT_EQ(round(12, 12), 3) << "25 % less";
}

TEST_F(TwoReplicas, FirstMoveAmongOtherReplicasNeedsNoMoreThanTheVeryFirst) {
  for (int i = 0; i < 3; ++i) round(10, 20);
  Balancer& balancer = balancer_;
  const auto alone = [&] {
    balancer.measure(0, 100, 10);
    balancer.measure(1, 100, 5);
    return balancer.judge(owners_, weights_, {0}).has_value();
  };
  EXPECT_FALSE(alone()) << "nothing can be owned otherwise than by the one that is present";
  owners_ = {0, 0, 1, 1, 1, 1};
  for (int i = 0; i < 2; ++i) EXPECT_EQ(round(11, 12), std::nullopt);
  EXPECT_EQ(round(11, 12), 3) << "18 % are enough again";
}

}  // namespace
}  // namespace troupe::pipeline
