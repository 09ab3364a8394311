#include "pipeline/iteration_share.h"

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

}  // namespace
}  // namespace troupe::pipeline
