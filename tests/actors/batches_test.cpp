#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "actors/iteration_feed.h"
#include "actors/messages.h"
#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::Context;
using runtime::Message;
using runtime::Script;

Message batch(std::uint64_t iteration, std::uint32_t micro_batch, std::uint32_t feed = 1) {
  return Message::of(BatchMessage{iteration, micro_batch, 2, feed, 0},
                     {Buffer::zeroed(8 + micro_batch), Buffer::zeroed(24), Buffer::zeroed(16)});
}

void take(Batches& batches, std::uint64_t iteration, std::vector<std::uint32_t> micro_batches,
          std::uint32_t feed = 1) {
  for (const std::uint32_t each : micro_batches) batches.take(batch(iteration, each, feed));
}

using Indices = std::vector<std::uint32_t>;

// Whether these are here; they are taken then.
bool has(Batches& batches, std::uint64_t iteration, const Indices& indices) {
  const auto next = batches.next(iteration, indices);
  EXPECT_TRUE(next.ok()) << next.error().message;
  if (!next.ok() || !next->has_value()) return false;
  Indices found;
  for (const pipeline::MicroBatch& each : **next) found.push_back(each.index);
  EXPECT_EQ(found, indices);
  return true;
}

TEST(Batches, ComeInTheOrderOfTheFeedWhenAllOfAnIterationAreHere) {
  Batches batches;
  batches.expect(1, 0, 3);
  take(batches, 4, {2, 5});
  EXPECT_FALSE(has(batches, 4, {2, 5, 7}));
  EXPECT_EQ(batches.ahead(), 2U) << "those that are here stay";
  take(batches, 4, {7});
  EXPECT_TRUE(has(batches, 4, {2, 5, 7}));
  EXPECT_EQ(batches.ahead(), 0U);
  EXPECT_TRUE(has(batches, 5, {})) << "nothing is all of nothing";
}

TEST(Batches, HoldWhatTheLoaderSent) {
  Batches batches;
  batches.expect(1, 0, 1);
  take(batches, 0, {3});
  const auto next = batches.next(0, Indices{3});
  ASSERT_TRUE(next.ok() && next->has_value());
  const auto& made = *next;
  EXPECT_EQ(made->front().events.events, 2U);
  EXPECT_EQ(made->front().events.images.size(), 11U);
  EXPECT_EQ(made->front().events.conditions.size(), 24U);
  EXPECT_EQ(made->front().events.event_ids.size(), 16U);
}

TEST(Batches, AnotherFeedLetsGoOfWhatIsHereAndOfWhatWasOnItsWay) {
  Batches batches;
  batches.expect(1, 0, 2);
  take(batches, 4, {2, 5});
  batches.expect(2, 0, 2);
  EXPECT_EQ(batches.ahead(), 0U);
  take(batches, 4, {2, 5}, 1);
  EXPECT_EQ(batches.ahead(), 0U);
  take(batches, 4, {1}, 2);
  take(batches, 4, {5}, 1);
  take(batches, 4, {2}, 2);
  EXPECT_TRUE(has(batches, 4, {1, 2}));
}

TEST(Batches, WhatIsMissingComesBeforeTheIterationsAfterIt) {
  Batches batches;
  batches.note_in_use(2);
  batches.expect(3, 2, 2);
  take(batches, 6, {9}, 3);
  take(batches, 7, {9}, 3);
  take(batches, 8, {1, 9}, 3);
  EXPECT_TRUE(has(batches, 6, {9}));
  EXPECT_TRUE(has(batches, 7, {9}));
  batches.note_in_use(0);
  EXPECT_TRUE(has(batches, 8, {1, 9}));
}

// It may be on another node.
TEST(Batches, OthersThanThoseThatAreNextAreToldByName) {
  Batches batches;
  batches.expect(1, 0, 1);
  take(batches, 5, {2});
  for (const auto& [iteration, index] : {std::pair{4, 2U}, std::pair{5, 3U}}) {
    const auto next = batches.next(static_cast<std::uint64_t>(iteration), Indices{index});
    ASSERT_FALSE(next.ok());
    EXPECT_EQ(next.error().kind, runtime::ErrorKind::kLostPeers);
    EXPECT_THAT(next.error().message, testing::HasSubstr("micro-batch 2 of iteration 5"));
  }
}

// How many a loader gets rid of, of a link that holds 3, when all that it sends is of feed 1 and
// this is done to what the replica has, once when it begins and once when nothing moves any more.
std::pair<int, int> sent(const std::function<void(Batches&)>& begin,
                         const std::function<void(Batches&)>& then) {
  int count = 0, before = 0, after = 0;
  std::optional<Batches> batches(std::in_place);
  Play play;
  Script root, loader, replica;
  root.start = [](Context& context) { context.after(std::chrono::seconds(2)); };
  root.timer = [](Context& context, runtime::TimerId) { context.finish(); };
  bool over = false;  // what holds messages must not outlive their node
  const auto send = [&](Context& context) {
    while (!over && count < 100 && context.send("batches", batch(0, 0))) ++count;
  };
  loader.start = send;
  loader.credit_returned = [send](Context& context, std::string_view) { send(context); };
  replica.start = [&](Context& context) {
    begin(*batches);
    context.after(std::chrono::seconds(1));
    context.after(std::chrono::milliseconds(1500));
  };
  replica.receive = [&](Context&, Message message) {
    if (batches) batches->take(std::move(message));
  };
  replica.timer = [&, first = true](Context&, runtime::TimerId) mutable {
    if (std::exchange(first, false)) {
      before = count;
      then(*batches);
    } else {
      after = count;
      batches.reset();
      over = true;
    }
  };
  play.actor("coordinator", root).actor("loader", loader).actor("replica", replica);
  play.link("loader", "batches", "replica", "batches", runtime::Lane::kData, 3);
  const runtime::NodeEnd end = play.run(1);
  EXPECT_FALSE(end.error) << end.error->message;
  return {before, after};
}

using Counts = std::pair<int, int>;

TEST(Batches, KeepAnIterationWithoutItsCreditAndWhatIsBeyondWithIt) {
  EXPECT_EQ(sent([](Batches& batches) { batches.expect(1, 0, 5); },
                 [](Batches& batches) { EXPECT_EQ(batches.ahead(), 5U + 3U); }),
            (Counts{5 + 3, 5 + 3}));
}

TEST(Batches, TakeInAsManyAsTheIterationsUnderWayHaveDoneWith) {
  const auto begin = [](Batches& batches) {
    batches.expect(1, 0, 5);
    batches.note_in_use(4);
  };
  EXPECT_EQ(sent(begin, [](Batches& batches) { batches.note_in_use(1); }), (Counts{1 + 3, 4 + 3}));
  EXPECT_EQ(sent(begin, [](Batches& batches) { batches.note_in_use(9); }), (Counts{1 + 3, 1 + 3}));
}

TEST(Batches, TakeInWhatIsMissingWhateverIsInUse) {
  const auto begin = [](Batches& batches) {
    batches.note_in_use(5);
    batches.expect(1, 2, 5);
  };
  EXPECT_EQ(sent(begin, [](Batches&) {}), (Counts{2 + 3, 2 + 3}));
}

TEST(Batches, CreditOfAFeedThatIsOverGoesBack) {
  const auto begin = [](Batches& batches) { batches.expect(1, 0, 5); };
  const auto [before, after] = sent(begin, [](Batches& batches) { batches.expect(1, 0, 7); });
  EXPECT_EQ(before, 5 + 3);
  EXPECT_EQ(after, 5 + 3 + 7 + 3);
}

}  // namespace
}  // namespace troupe::actors
