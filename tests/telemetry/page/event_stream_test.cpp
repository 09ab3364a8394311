#include "telemetry/page/event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::telemetry {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Runs {
  explicit Runs(std::size_t count) : sources(count) {
    for (RunSource& source : sources) {
      histories.push_back(std::make_shared<History>());
      source.history = histories.back();
    }
  }
  std::vector<std::shared_ptr<History>> histories;
  std::vector<RunSource> sources;
};

std::string id_of(const EventStream::Event& event) {
  const std::size_t at = event.head.find("id: ") + 4;
  return event.head.substr(at, event.head.find('\n', at) - at);
}

TEST(EventStream, FirstAllThenWhatIsNewThenNothing) {
  const Runs run(1);
  History& history = *run.histories[0];
  EventStream stream(77, "", {0});
  const auto first = stream.next(run.sources);
  ASSERT_TRUE(first);
  EXPECT_THAT(first->head, StartsWith("event: history\nid: 77-"));
  EXPECT_THAT(*first->json, HasSubstr("\"whole\":true"));
  EXPECT_FALSE(stream.next(run.sources));
  history.take_log({1.0, "info", "one"});
  history.take_log({1.0, "info", "two"});
  const auto second = stream.next(run.sources);
  ASSERT_TRUE(second);
  EXPECT_THAT(second->head, StartsWith("event: update\nid: 77-"));
  EXPECT_THAT(*second->json, HasSubstr("\"whole\":false"));
  EXPECT_THAT(*second->json, HasSubstr("two"));
  EXPECT_FALSE(stream.next(run.sources));
}

TEST(EventStream, RunsTakeTurnsAndEventsTellTheirNumber) {
  const Runs all(3);
  EventStream stream(77, "", {2, 0});
  EXPECT_THAT(stream.next(all.sources)->head, StartsWith("event: history 2\nid: 77-"));
  // The first is told of again only when the second had its turn.
  all.histories[2]->take_log({1.0, "info", "more"});
  EXPECT_THAT(stream.next(all.sources)->head, StartsWith("event: history 0\nid: 77-"));
  EXPECT_THAT(stream.next(all.sources)->head, StartsWith("event: update 2\nid: 77-"));
  EXPECT_FALSE(stream.next(all.sources));
  all.histories[1]->take_log({1.0, "info", "of a run that is not followed"});
  EXPECT_FALSE(stream.next(all.sources));
  all.histories[0]->take_log({1.0, "info", "news"});
  const auto event = stream.next(all.sources);
  ASSERT_TRUE(event);
  EXPECT_THAT(event->head, StartsWith("event: update 0\n"));
  EXPECT_THAT(*event->json, HasSubstr("news"));
}

TEST(EventStream, ClientOfThisStartGoesOnWhereItWas) {
  const Runs run(1);
  EventStream before(77, "", {0});
  const std::string id = id_of(*before.next(run.sources));
  EventStream again(77, id, {0});
  EXPECT_THAT(*again.next(run.sources)->json, HasSubstr("\"whole\":false"));
  EXPECT_FALSE(again.next(run.sources));
  run.histories[0]->take_log({1.0, "info", "later"});
  EXPECT_THAT(EventStream(77, id, {0}).next(run.sources)->head, StartsWith("event: update"));
  for (const char* other :
       {"76-1", "77", "77-", "77-x", "x", "-", "77-1 ", "77-1,1", "77-,", "77--1"}) {
    EXPECT_THAT(EventStream(77, other, {0}).next(run.sources)->head, StartsWith("event: history"))
        << other;
  }
  // A version that has not been yet.
  EXPECT_THAT(*EventStream(77, "77-4000000", {0}).next(run.sources)->json,
              HasSubstr("\"whole\":true"));
}

TEST(EventStream, ClientOfSeveralRunsGoesOnInEach) {
  const Runs all(2);
  all.histories[1]->take_log({1.0, "info", "early"});
  EventStream before(77, "", {0, 1});
  // Nothing was heard of the second run yet.
  EventStream between(77, id_of(*before.next(all.sources)), {0, 1});
  EXPECT_THAT(between.next(all.sources)->head, StartsWith("event: update 0"));
  EXPECT_THAT(between.next(all.sources)->head, StartsWith("event: history 1"));
  const std::string id = id_of(*before.next(all.sources));
  EventStream again(77, id, {0, 1});
  EXPECT_THAT(again.next(all.sources)->head, StartsWith("event: update 0"));
  EXPECT_THAT(again.next(all.sources)->head, StartsWith("event: update 1"));
  // Other runs than before.
  EXPECT_THAT(EventStream(77, id, {1}).next(all.sources)->head, StartsWith("event: history"));
}

TEST(EventStream, FollowersOfOneVersionShareItsText) {
  const Runs run(1);
  EventStream one(1, "", {0}), two(1, "", {0});
  EXPECT_EQ(one.next(run.sources)->json, two.next(run.sources)->json);
  run.histories[0]->take_log({1.0, "info", "new"});
  EXPECT_EQ(one.next(run.sources)->json, two.next(run.sources)->json);
}

}  // namespace
}  // namespace troupe::telemetry
