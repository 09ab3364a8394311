#include "pipeline/steps/iteration_share.h"

#include <gtest/gtest.h>

#include <memory>

namespace troupe::pipeline {
namespace {

// A Buffer that can be asked whether anybody still holds it.
runtime::Buffer watched(std::weak_ptr<std::byte>& watcher) {
  const auto owner = std::make_shared<std::byte>();
  watcher = owner;
  return runtime::Buffer::wrap(owner.get(), 1, owner);
}

TEST(IterationShare, ReleasedEventsAreFreedAndTheirIndicesStay) {
  std::weak_ptr<std::byte> first, second;
  std::vector<MicroBatch> micro_batches(2);
  micro_batches[0].index = 3;
  micro_batches[0].events.images = watched(first);
  micro_batches[1].index = 5;
  micro_batches[1].events.images = watched(second);
  IterationShare iteration(7, std::move(micro_batches));
  EXPECT_EQ(iteration.iteration(), 7u);
  EXPECT_FALSE(first.expired());

  iteration.release_events(1);
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(second.expired());
  iteration.release_events(2);
  EXPECT_TRUE(second.expired());
  ASSERT_EQ(iteration.size(), 2u);
  EXPECT_EQ(iteration.micro_batch(0).index, 3u);
  EXPECT_EQ(iteration.micro_batch(1).index, 5u);
}

MicroBatch micro_batch(std::uint32_t index, std::weak_ptr<std::byte>* watcher = nullptr) {
  MicroBatch made;
  made.index = index;
  if (watcher != nullptr) made.events.images = watched(*watcher);
  return made;
}

TEST(IterationShare, WhatItTakesOverStandsBehindItsOwn) {
  IterationShare iteration(7, {micro_batch(3), micro_batch(5)});
  EXPECT_FALSE(iteration.has(1));
  iteration.take_over({micro_batch(1), micro_batch(9)});
  ASSERT_EQ(iteration.size(), 4u);
  EXPECT_EQ(iteration.held(), 4u);
  EXPECT_EQ(iteration.with_events(), 4u);
  EXPECT_EQ(iteration.computed_in(0), 4u);
  const std::uint32_t indices[] = {3, 5, 1, 9};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(iteration.micro_batch(i).index, indices[i]);
  for (const std::uint32_t index : indices) EXPECT_TRUE(iteration.has(index));
  EXPECT_FALSE(iteration.has(2));
  iteration.take_over({});
  EXPECT_EQ(iteration.size(), 4u);
}

TEST(IterationShare, TakingOverAWitnessComputesNothingToCompareAnyMore) {
  std::weak_ptr<std::byte> compared;
  IterationShare iteration(7, {micro_batch(3), micro_batch(5), micro_batch(9, &compared)},
                           SpotCheck{1, 9}, true);
  ASSERT_EQ(iteration.size(), 2u);
  ASSERT_EQ(iteration.computed_in(1), 3u);
  ASSERT_EQ(iteration.checked_in(1), 2u);
  EXPECT_FALSE(iteration.has(9)) << "it is another's";
  iteration.take_over({micro_batch(4)});
  EXPECT_TRUE(compared.expired());
  EXPECT_EQ(iteration.size(), 3u);
  EXPECT_EQ(iteration.held(), 3u);
  EXPECT_EQ(iteration.computed_in(1), 3u);
  EXPECT_EQ(iteration.micro_batch(2).index, 4u);
  EXPECT_FALSE(iteration.checked_in(1));
}

// The one that is compared was the lost member's.
TEST(IterationShare, WitnessThatTakesOverWhatItComparedHasItOnceAndAsItsOwn) {
  IterationShare iteration(7, {micro_batch(3), micro_batch(9)}, SpotCheck{1, 9}, true);
  iteration.take_over({micro_batch(9)});
  EXPECT_EQ(iteration.size(), 2u);
  EXPECT_EQ(iteration.held(), 2u);
  EXPECT_TRUE(iteration.has(9));
  EXPECT_EQ(iteration.checked_in(1), 1u);
  EXPECT_FALSE(iteration.checked_in(0));
}

TEST(IterationShare, EventsThatAreReleasedStaySoAndThoseTakenOverAreKept) {
  for (const bool witness : {false, true}) {
    std::weak_ptr<std::byte> taken;
    std::vector<MicroBatch> micro_batches{micro_batch(3), micro_batch(5)};
    if (witness) micro_batches.push_back(micro_batch(9));
    IterationShare iteration(7, micro_batches, SpotCheck{1, 9}, witness);
    iteration.release_events(iteration.held());
    EXPECT_EQ(iteration.with_events(), 0u);
    iteration.take_over({micro_batch(1, &taken)});
    EXPECT_EQ(iteration.with_events(), 1u);
    iteration.release_events(2);
    EXPECT_FALSE(taken.expired());
    iteration.release_events(3);
    EXPECT_TRUE(taken.expired());
    EXPECT_EQ(iteration.with_events(), 0u);
  }
}

}  // namespace
}  // namespace troupe::pipeline
