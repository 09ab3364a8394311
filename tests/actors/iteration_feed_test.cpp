#include "actors/iteration_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::Message;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A View whose micro-batches belong to these replicas.
ViewPointer owned_by(std::vector<std::uint32_t> owners) {
  pipeline::View view = *view_of(2, 1);
  view.owners = std::move(owners);
  return std::make_shared<const pipeline::View>(std::move(view));
}

// The micro-batch has one event of one cell, unless `bytes` says otherwise.
Message fed_batch(std::uint64_t iteration, std::uint32_t index, std::uint32_t feed,
                  std::size_t bytes = sizeof(float)) {
  return Message::of(BatchMessage{iteration, index, 1, feed, 0},
                     {Buffer::zeroed(bytes), Buffer::zeroed(3 * sizeof(float)),
                      Buffer::zeroed(sizeof(std::uint64_t))});
}

TEST(IterationFeed, BeginsAnIterationWhenAllItsOwnMicroBatchesAreHere) {
  IterationFeed feed({});
  const Feed asked = feed.enter(owned_by({0, 1, 0}), 5, {});
  EXPECT_EQ(asked.iteration, 5U);
  EXPECT_THAT(asked.missing, IsEmpty());
  feed.take(fed_batch(5, 0, asked.number));
  EXPECT_EQ(*feed.begin(5), nullptr) << "the loader has not told where the run ends";
  feed.set_end(6);
  EXPECT_EQ(*feed.begin(5), nullptr) << "one is lacking";
  feed.take(fed_batch(5, 2, asked.number));
  ASSERT_NE(*feed.begin(5), nullptr);
  EXPECT_EQ((*feed.begin(5))->size(), 2U);
  EXPECT_EQ(*feed.begin(6), nullptr) << "there is no such iteration";
}

TEST(IterationFeed, AsksInAnotherViewForWhatItHasGotAloneAndThenGoesOn) {
  IterationFeed feed({});
  const Feed first = feed.enter(owned_by({0, 1, 1}), 5, {});
  feed.set_end(9);
  feed.take(fed_batch(5, 0, first.number));
  const IterationFeed::Share share = *feed.begin(5);
  const Feed second = feed.enter(owned_by({0, 0, 1}), 5, {share});
  EXPECT_THAT(second.missing, ElementsAre(Feed::Missing{5, {1}}));
  EXPECT_EQ(second.iteration, 6U);
  EXPECT_FALSE(feed.is_whole());
  feed.take(fed_batch(5, 1, first.number));
  EXPECT_EQ(*feed.take_over(), nullptr) << "it is of the feed before";
  feed.take(fed_batch(5, 1, second.number));
  EXPECT_EQ(*feed.take_over(), share);
  EXPECT_TRUE(feed.is_whole());
  EXPECT_EQ(share->size(), 2U);
}

TEST(IterationFeed, AsksForAllAnewWhereItBeginsAnewAndHasRoomForThem) {
  IterationFeed feed({});
  const Feed first = feed.enter(owned_by({0, 0, 1}), 5, {});
  feed.set_end(9);
  for (const std::uint32_t index : {0, 1}) feed.take(fed_batch(5, index, first.number));
  ASSERT_NE(*feed.begin(5), nullptr);
  feed.begin_anew();
  const Feed second = feed.enter(owned_by({0, 0, 1}), 5, {});
  EXPECT_THAT(second.missing, IsEmpty());
  EXPECT_EQ(second.iteration, 5U);
  for (const std::uint32_t index : {0, 1}) feed.take(fed_batch(5, index, second.number));
  EXPECT_NE(*feed.begin(5), nullptr);
}

TEST(IterationFeed, MicroBatchOutOfTurnOrOfAnotherModelIsAnError) {
  const auto error_of = [](Message message) -> std::string {
    IterationFeed feed({});
    feed.enter(owned_by({0, 1}), 0, {});
    feed.set_end(9);
    feed.take(std::move(message));
    const auto begun = feed.begin(0);
    return begun.ok() ? "" : begun.error().message;
  };
  EXPECT_EQ(error_of(fed_batch(0, 0, 1)), "");
  EXPECT_EQ(error_of(fed_batch(5, 7, 9, 2)), "") << "of another feed";
  EXPECT_THAT(error_of(fed_batch(1, 0, 1)), HasSubstr("iteration 1 where 0 of 0 was to come"));
  EXPECT_THAT(error_of(fed_batch(0, 1, 1)), HasSubstr("micro-batch 1 of iteration 0 where 0 of 0"));
  EXPECT_THAT(error_of(fed_batch(0, 0, 1, 8)), HasSubstr("of another model"));
}

}  // namespace
}  // namespace troupe::actors
