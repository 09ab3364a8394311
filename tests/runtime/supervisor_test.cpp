#include "runtime/supervisor.h"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

using Kind = Supervisor::Order::Kind;
using State = Supervisor::State;
using std::chrono::seconds;

constexpr ActorId kRoot{0}, kBranch{1}, kLeaf{2}, kTwin{3};
const TimePoint kNow = seconds(100);

// root owns branch; branch owns leaf and twin.
Supervisor tree() {
  Plan plan;
  plan.actors = {{"root", "", "", false},
                 {"branch", "", "root", false},
                 {"leaf", "", "branch", false},
                 {"twin", "", "branch", false}};
  return {plan, seconds(5)};
}

Error trouble(const std::string& text) { return {ErrorKind::kDiverged, text}; }

std::string text(const Supervisor::Orders& orders) {
  std::string all;
  for (const auto& order : orders) {
    all += order.kind == Kind::kStop ? "stop " : order.kind == Kind::kTell ? "tell " : "start ";
    all += std::to_string(order.actor.index);
    if (order.kind == Kind::kTell) {
      all += " of " + order.end.name + (order.end.error ? "!" + order.end.error->message : "");
    }
    all += "; ";
  }
  return all;
}

TEST(Supervisor, OwnerHearsOfAChildThatEnded) {
  Supervisor supervisor = tree();
  EXPECT_EQ(text(supervisor.gone(kLeaf, std::nullopt, kNow)), "tell 1 of leaf; ");
  EXPECT_EQ(supervisor.state(kLeaf), State::kEnded);
  EXPECT_FALSE(supervisor.ended());
}

TEST(Supervisor, FailedActorEndsOnlyAfterItsSubtree) {
  Supervisor supervisor = tree();
  EXPECT_EQ(text(supervisor.gone(kBranch, trouble("x"), kNow)), "stop 2; stop 3; ");
  EXPECT_EQ(supervisor.state(kBranch), State::kClosing);
  EXPECT_EQ(text(supervisor.gone(kTwin, std::nullopt, kNow)), "");
  EXPECT_EQ(text(supervisor.gone(kLeaf, std::nullopt, kNow)), "tell 0 of branch!x; ");
  EXPECT_EQ(supervisor.state(kBranch), State::kEnded);
}

TEST(Supervisor, EndOfTheRootStopsEverythingAndIsTheEnd) {
  Supervisor supervisor = tree();
  EXPECT_EQ(text(supervisor.gone(kRoot, std::nullopt, kNow)), "stop 1; ");
  EXPECT_EQ(text(supervisor.gone(kBranch, std::nullopt, kNow)), "stop 2; stop 3; ");
  supervisor.gone(kLeaf, std::nullopt, kNow);
  EXPECT_FALSE(supervisor.ended());
  EXPECT_EQ(text(supervisor.gone(kTwin, std::nullopt, kNow)), "");
  EXPECT_TRUE(supervisor.ended());
  EXPECT_FALSE(supervisor.error().has_value());
}

TEST(Supervisor, FailureWhileStoppedByAGoneOwnerIsNotLost) {
  Supervisor supervisor = tree();
  supervisor.gone(kRoot, std::nullopt, kNow);
  supervisor.gone(kBranch, std::nullopt, kNow);
  supervisor.gone(kLeaf, trouble("late"), kNow);
  supervisor.gone(kTwin, trouble("later"), kNow);
  ASSERT_TRUE(supervisor.error().has_value());
  EXPECT_EQ(supervisor.error()->message, "late");
}

TEST(Supervisor, EndThatTheOwnerDidNotSeeBecomesTheOwners) {
  Supervisor supervisor = tree();
  supervisor.gone(kLeaf, trouble("unseen"), kNow);
  supervisor.unseen(kBranch, {kLeaf, "leaf", trouble("unseen"), 0});
  supervisor.gone(kTwin, std::nullopt, kNow);
  EXPECT_EQ(text(supervisor.gone(kBranch, std::nullopt, kNow)), "tell 0 of branch!unseen; ");
}

TEST(Supervisor, OwnErrorOfAnActorComesBeforeThoseOfItsChildren) {
  Supervisor supervisor = tree();
  supervisor.gone(kBranch, trouble("own"), kNow);
  supervisor.gone(kLeaf, trouble("other"), kNow);
  EXPECT_EQ(text(supervisor.gone(kTwin, std::nullopt, kNow)), "tell 0 of branch!own; ");
}

TEST(Supervisor, RestartStartsTheSubtreeOwnersFirst) {
  Supervisor supervisor = tree();
  supervisor.gone(kBranch, trouble("x"), kNow);
  supervisor.gone(kLeaf, std::nullopt, kNow);
  supervisor.gone(kTwin, std::nullopt, kNow);
  EXPECT_EQ(text(supervisor.restart(kRoot, kBranch)), "start 1; start 2; start 3; ");
  EXPECT_EQ(supervisor.state(kBranch), State::kRunning);
  const auto orders = supervisor.gone(kTwin, trouble("again"), kNow);
  EXPECT_EQ(orders.at(0).end.restarts, 0);
  supervisor.restart(kBranch, kTwin);
  EXPECT_EQ(supervisor.gone(kTwin, trouble("again"), kNow).at(0).end.restarts, 1);
}

TEST(Supervisor, RestartIsRefusedToAnOwnerAskedToStop) {
  Supervisor supervisor = tree();
  supervisor.gone(kLeaf, trouble("x"), kNow);
  supervisor.ask_stop(kBranch, kNow);
  EXPECT_EQ(text(supervisor.restart(kBranch, kLeaf)), "");
  EXPECT_EQ(supervisor.state(kLeaf), State::kEnded);
}

TEST(Supervisor, RestartIsRefusedForALiveChild) {
  Supervisor supervisor = tree();
  EXPECT_EQ(text(supervisor.restart(kBranch, kLeaf)), "");
}

TEST(Supervisor, SecondRequestToStopChangesNothing) {
  Supervisor supervisor = tree();
  EXPECT_EQ(text(supervisor.ask_stop(kLeaf, kNow)), "stop 2; ");
  EXPECT_EQ(text(supervisor.ask_stop(kLeaf, kNow + seconds(4))), "");
  EXPECT_EQ(supervisor.next_overdue(), kNow + seconds(5));
}

TEST(Supervisor, OverdueAreThoseWhosePatienceRanOut) {
  Supervisor supervisor = tree();
  supervisor.ask_stop(kLeaf, kNow);
  supervisor.ask_stop(kTwin, kNow + seconds(1));
  EXPECT_TRUE(supervisor.overdue(kNow + seconds(4)).empty());
  EXPECT_EQ(supervisor.overdue(kNow + seconds(5)), std::vector<ActorId>{kLeaf});
  supervisor.gone(kLeaf, std::nullopt, kNow + seconds(5));
  EXPECT_TRUE(supervisor.overdue(kNow + seconds(5)).empty());
  EXPECT_EQ(supervisor.next_overdue(), kNow + seconds(6));
}

TEST(Supervisor, FindsChildrenByName) {
  const Supervisor supervisor = tree();
  EXPECT_EQ(supervisor.child(kBranch, "twin"), kTwin);
  EXPECT_EQ(supervisor.child(kRoot, "twin"), kOutside);
  EXPECT_EQ(supervisor.children(kBranch), 2);
}

}  // namespace
}  // namespace troupe::runtime
