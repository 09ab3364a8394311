#include "tests/sim/training/training_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/stride.h"

namespace troupe::sim {
namespace {

TEST(SimulatedTraining, WhateverHappensTheStateIsThatOfARunToWhichNothingDoes) {
  std::size_t joined = 0, heads = 0, changes = 0, shared_anew = 0;
  int resumed = 0;
  std::size_t changes_of_workers = 0, changes_of_rounded = 0, changes_of_turns = 0,
              changes_of_sites = 0;
  std::size_t guests = 0, outlived = 0, most_of_one_place = 0;
  // From 9 on, so that 20 is among those that a stride of 11 plays: its run ends and is resumed.
  for (std::uint64_t seed = 9 % stride(11); seed < 900; seed += stride(11)) {
    const TrainingHistoryEnd history = play_training_history(seed);
    ASSERT_FALSE(history.failure) << "seed " << seed << ": " << *history.failure;
    joined += history.end.joined;
    heads += history.end.heads;
    changes += history.end.changes;
    shared_anew += history.end.shared_anew;
    resumed += history.resumed ? 1 : 0;
    guests += history.end.guests;
    outlived += history.end.outlived;
    most_of_one_place = std::max(most_of_one_place, history.end.most_of_one_place);
    const bool rounded = history.strategy == Strategy::kLocalInInt8;
    const bool is_tree = history.strategy == Strategy::kTree;
    if (rounded || is_tree || history.strategy == Strategy::kLocal) {
      changes_of_workers += history.end.changes;
    }
    if (takes_turns(history.strategy)) changes_of_turns += history.end.changes;
    if (is_tree || history.strategy == Strategy::kGemInSites) {
      changes_of_sites += history.end.changes;
    }
    if (rounded) changes_of_rounded += history.end.changes;
  }
  EXPECT_GT(joined, 150 / stride(11));
  EXPECT_GT(heads, 1050 / stride(11));
  EXPECT_GT(changes, 900 / stride(11));
  EXPECT_GT(shared_anew, 150 / stride(11));
  EXPECT_GT(changes_of_workers, 150 / stride(11));
  EXPECT_GT(changes_of_rounded, 20 / stride(11));
  EXPECT_GT(changes_of_sites, 20 / stride(11));
  EXPECT_GT(changes_of_turns, 100 / stride(11));
  EXPECT_GT(guests, 700 / stride(11));
  EXPECT_GT(outlived, 0U) << "nobody woke in another one's place";
  EXPECT_GT(most_of_one_place, 5U);
  EXPECT_GT(resumed, 0);
  EXPECT_LE(resumed, std::max(8, 42 / static_cast<int>(stride(11))))
      << "runs go on as long as one member is left";
}

TEST(SimulatedTraining, WhateverHappensToARunOfAStrategyItsStateIsThatOfAnUndisturbedOne) {
  std::vector<std::size_t> changes(kStrategyWords.size());
  for (std::uint64_t seed = 1; seed <= kStrategyWords.size() * 64; seed += stride(10)) {
    const auto strategy = static_cast<Strategy>(seed % kStrategyWords.size());
    const TrainingHistoryEnd history = play_training_history(seed, {}, strategy);
    ASSERT_FALSE(history.failure) << "seed " << seed << ": " << *history.failure;
    EXPECT_EQ(history.strategy, strategy);
    changes[seed % kStrategyWords.size()] += history.end.changes;
  }
  EXPECT_THAT(changes, testing::Each(testing::Gt(0U)));
}

// The second change comes before the member has the parts that it takes over in the first one.
TEST(SimulatedTraining, PartsThatAreStillTakenOverInAnotherViewBeginTheirWorkerAnew) {
  const TrainingHistoryEnd history = play_training_history(1465, {}, Strategy::kTree);
  EXPECT_FALSE(history.failure) << *history.failure;
  EXPECT_GE(history.end.changes, 2U);
}

}  // namespace
}  // namespace troupe::sim
