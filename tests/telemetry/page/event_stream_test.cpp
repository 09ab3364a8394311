#include "telemetry/page/event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "telemetry/page/listen_address.h"
#include "telemetry/page/text_budget.h"

namespace troupe::telemetry {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(EventStream, FirstAllThenWhatIsNewThenNothing) {
  History history;
  EventStream stream(77, "");
  const auto first = stream.next(history);
  ASSERT_TRUE(first);
  EXPECT_THAT(first->head, StartsWith("event: history\nid: 77-"));
  EXPECT_THAT(*first->json, HasSubstr("\"whole\":true"));
  EXPECT_FALSE(stream.next(history));
  history.take_log({1.0, "info", "one"});
  history.take_log({1.0, "info", "two"});
  const auto second = stream.next(history);
  ASSERT_TRUE(second);
  EXPECT_THAT(second->head, StartsWith("event: update\nid: 77-"));
  EXPECT_THAT(*second->json, HasSubstr("\"whole\":false"));
  EXPECT_THAT(*second->json, HasSubstr("two"));
  EXPECT_FALSE(stream.next(history));
}

TEST(EventStream, ClientOfThisStartGoesOnWhereItWas) {
  History history;
  EventStream before(77, "");
  const std::string head = before.next(history)->head;
  const std::size_t at = head.find("77-");
  const std::string id = head.substr(at, head.find('\n', at) - at);
  EventStream again(77, id);
  EXPECT_THAT(*again.next(history)->json, HasSubstr("\"whole\":false"));
  EXPECT_FALSE(again.next(history));
  history.take_log({1.0, "info", "later"});
  EXPECT_THAT(EventStream(77, id).next(history)->head, StartsWith("event: update"));
  for (const char* other : {"76-1", "77", "77-", "77-x", "x", "-", "77-1 "}) {
    EXPECT_THAT(EventStream(77, other).next(history)->head, StartsWith("event: history")) << other;
  }
  // A version that has not been yet.
  EXPECT_THAT(*EventStream(77, "77-4000000").next(history)->json, HasSubstr("\"whole\":true"));
}

TEST(EventStream, FollowersOfOneVersionShareItsText) {
  History history;
  EventStream one(1, ""), two(1, "");
  EXPECT_EQ(one.next(history)->json, two.next(history)->json);
  history.take_log({1.0, "info", "new"});
  EXPECT_EQ(one.next(history)->json, two.next(history)->json);
}

TEST(TextBudget, TextThatManyGetCountsOnce) {
  const auto text = std::make_shared<const std::string>(100, 'a');
  const auto other = std::make_shared<const std::string>(10, 'b');
  TextBudget budget;
  EXPECT_EQ(budget.cost(text), 100u);
  budget.take(text);
  budget.take(text);
  budget.take(nullptr);
  EXPECT_EQ(budget.cost(text), 0u);
  budget.take(other);
  EXPECT_EQ(budget.bytes(), 110u);
  budget.release(text);
  EXPECT_EQ(budget.bytes(), 110u);
  budget.release(text);
  EXPECT_EQ(budget.bytes(), 10u);
  budget.release(other);
  EXPECT_EQ(budget.bytes(), 0u);
}

TEST(ListenAddress, HostAndPortOrARefusal) {
  const auto text = [](const char* given) {
    const auto address = parse_listen_address(given);
    return address.ok() ? address_text(*address) : "no";
  };
  for (const char* right : {"127.0.0.1:8400", "localhost:0", "[::1]:65535", "*:8400"}) {
    EXPECT_EQ(text(right), right);
  }
  for (const char* wrong : {"", "8400", ":8400", "::1:8400", "localhost", "localhost:",
                            "localhost:65536", "localhost:-1", "localhost:80x", "[]:80"}) {
    EXPECT_EQ(text(wrong), "no") << wrong;
  }
}

}  // namespace
}  // namespace troupe::telemetry
