#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/progress_watch.h"
#include "runtime/timer_queue.h"
#include "runtime/wait_graph.h"

namespace troupe::runtime {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using Verdict = ProgressWatch::Verdict;

TEST(ProgressWatch, TellsWorkFromEveryKindOfStanding) {
  struct Case {
    const char* what;
    int at_s;
    Activity activity;
    Verdict verdict;
  };
  const Case kCases[] = {
      {"begins", 0, {0, false, false}, Verdict::kMoving},
      {"computes, not yet for long", 9, {0, false, false}, Verdict::kMoving},
      {"computes for long", 10, {0, false, true}, Verdict::kSlow},
      {"named once per stuck_after", 19, {0, false, true}, Verdict::kMoving},
      {"named again", 20, {0, false, true}, Verdict::kSlow},
      {"moves again", 29, {5, false, false}, Verdict::kMoving},
      {"waits for a timer", 38, {5, true, true}, Verdict::kMoving},
      {"a timer's handler happens to run", 39, {5, false, true}, Verdict::kMoving},
      {"waits for timers only, for long", 39, {5, true, true}, Verdict::kStuck},
      {"waits for nothing", 40, {6, true, false}, Verdict::kDeadlock},
  };
  ProgressWatch watch(seconds(10), seconds(0));
  for (const Case& item : kCases) {
    EXPECT_EQ(watch.look(seconds(item.at_s), item.activity), item.verdict) << item.what;
  }
}

TEST(TimerQueue, GivesTimersInOrderOfDueTimeThenOfMaking) {
  TimerQueue timers;
  const auto late = timers.add({1}, seconds(9));
  const auto early = timers.add({2}, seconds(3));
  const auto same = timers.add({3}, seconds(3));
  EXPECT_TRUE(late.earliest);
  EXPECT_TRUE(early.earliest);
  EXPECT_FALSE(same.earliest);
  EXPECT_TRUE(timers.take_due(seconds(2)).empty());
  const auto due = timers.take_due(seconds(3));
  ASSERT_EQ(due.size(), 2u);
  EXPECT_EQ(due[0].id, early.timer.id);
  EXPECT_EQ(due[1].id, same.timer.id);
  EXPECT_EQ(timers.next_due(), seconds(9));
  timers.remove(late.timer.id, seconds(9));
  timers.remove(late.timer.id, seconds(9));
  EXPECT_EQ(timers.next_due(), TimerQueue::kNever);
}

void add_link(WaitGraph& graph, std::size_t from, std::size_t to, bool sender_waits) {
  LinkWait& link = graph.links.emplace_back();
  link.from = from;
  link.to = to;
  link.from_port = "out";
  link.to_port = "in";
  link.sender_waits = sender_waits;
  link.messages_out = sender_waits ? 1 : 0;
  link.message_credits = 1;
  link.byte_credits = 100;
}

// Three idle actors without links.
WaitGraph three() {
  WaitGraph graph;
  for (const char* name : {"a", "b", "c"}) graph.actors.emplace_back().name = name;
  return graph;
}

TEST(WaitGraph, CulpritIsTheHandlerThatRunsLongest) {
  WaitGraph graph = three();
  add_link(graph, 0, 1, true);
  graph.actors[1].activity = ActorWait::Activity::kRunning;
  graph.actors[1].running_for = seconds(3);
  graph.actors[2].activity = ActorWait::Activity::kRunning;
  graph.actors[2].running_for = seconds(12);
  EXPECT_EQ(culprit(graph), "c, whose handler has been running for 12.0 s");
}

TEST(WaitGraph, CulpritIsACircleOfSendersWithoutCredit) {
  WaitGraph graph = three();
  add_link(graph, 0, 1, true);
  add_link(graph, 1, 2, true);
  add_link(graph, 2, 1, true);
  EXPECT_EQ(culprit(graph), "a circle, b -> c -> b");
}

TEST(WaitGraph, CulpritIsACircleOfReceiversWithoutMessages) {
  WaitGraph graph = three();
  add_link(graph, 0, 1, false);
  add_link(graph, 1, 0, false);
  EXPECT_EQ(culprit(graph), "a circle, a -> b -> a");
}

// What the receiver keeps of its sender's credit is no message it still has to look at.
TEST(WaitGraph, CulpritIsACircleThroughAReceiverThatKeepsAllCredits) {
  WaitGraph graph = three();
  add_link(graph, 0, 1, true);
  EXPECT_EQ(culprit(graph), "a circle, a -> b -> a");
  EXPECT_THAT(print(graph), HasSubstr("b: keeps 1 of 1 messages of a; no message on in from a"));
}

TEST(WaitGraph, CulpritIsWhoKeepsOthersWaitingAndWaitsForNobody) {
  WaitGraph graph = three();
  add_link(graph, 0, 1, true);
  add_link(graph, 1, 2, true);
  graph.actors[2].activity = ActorWait::Activity::kQueued;
  EXPECT_EQ(culprit(graph), "c, which others wait for and which waits for nobody");
  EXPECT_THAT(print(graph), HasSubstr("c: about to run; keeps 1 of 1 messages of b"));
  EXPECT_THAT(print(graph), HasSubstr("no credit on out -> c.in (1 of 1 messages and 0 of 100"));
}

// Those that wait for it as well as for each other would go on if it did.
TEST(WaitGraph, CulpritIsWhoIsNotRunBeforeACircleThatWaitsForItToo) {
  WaitGraph graph = three();
  add_link(graph, 0, 1, false);
  add_link(graph, 1, 0, false);
  add_link(graph, 2, 1, false);
  graph.actors[2].activity = ActorWait::Activity::kQueued;
  EXPECT_EQ(culprit(graph), "c, which others wait for and which waits for nobody");
}

TEST(WaitGraph, EndedActorsAreNotWaitedFor) {
  WaitGraph graph = three();
  add_link(graph, 0, 1, false);
  add_link(graph, 1, 2, false);
  graph.actors[0].activity = ActorWait::Activity::kEnded;
  graph.actors[1].words = "the end of the epoch";
  EXPECT_EQ(print(graph),
            "  b: waits for the end of the epoch\n"
            "  c: no message on in from b");
  EXPECT_EQ(print_with_culprit(graph),
            "  b: waits for the end of the epoch\n"
            "  c: no message on in from b\n"
            "  culprit: b, which others wait for and which waits for nobody");
}

TEST(WaitGraph, SendersThatAreSilentOnOnePortShareALine) {
  WaitGraph graph = three();
  add_link(graph, 0, 2, false);
  add_link(graph, 1, 2, false);
  EXPECT_THAT(print(graph), HasSubstr("c: no message on in from a, b"));
}

TEST(WaitGraph, NobodyIsBlamedWhenNobodyWaits) { EXPECT_THAT(culprit(three()), HasSubstr("none")); }

}  // namespace
}  // namespace troupe::runtime
