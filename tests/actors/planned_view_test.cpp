// A Reducer in changes of the View in which nobody is lost.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/actors/reducer_scene.h"

namespace troupe::actors {
namespace {

using runtime::Message;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

// The sums of step 3 of the first View come back to member 1.
void come_round(Scene& scene) {
  scene.other(ring_bucket(kFirstView, 42)).other(ring_header(kFirstView));
}

TEST(PlannedView, WhatHasBegunIsFinishedInTheViewBefore) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).replica(own_bucket(kFirstView, 5));
  scene.root(halt(kSecond, true)).replica(own_header(kFirstView, 1));
  scene.root(view(kSecond, {0, 1, 2}, 4));
  come_round(scene);
  scene.replica(own_bucket(kSecond, 5, 4));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3, before 4", "sum 3.0: 42",
                                       "header 3.0", "view 1.2"));
  EXPECT_THAT(scene.passed_on,
              ElementsAre("on 1.1: bucket 3.0", "on 1.1: header 3.0", "gives 1.1: bucket 3.0",
                          "gives 1.1: header 3.0", "on 1.2: bucket 4.0"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(PlannedView, StepThatOnlyOthersHaveBegunWaitsUntilTheViewIsTold) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(halt(kSecond, true));
  scene.replica(own_bucket(kFirstView, 5)).replica(own_header(kFirstView, 1));
  scene.root(view(kSecond, {0, 1, 2}, 4));
  come_round(scene);
  EXPECT_THAT(scene.run(),
              ElementsAre("view 1.1", "halted 1.2 at 3", "sum 3.0: 42", "header 3.0", "view 1.2"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(PlannedView, StepThatNobodyHasBegunIsMadeInTheView) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(halt(kSecond, true));
  scene.replica(own_bucket(kFirstView, 5)).replica(own_header(kFirstView, 1));
  scene.root(view(kSecond, {0, 1, 2}, 3)).replica(own_bucket(kSecond, 6));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3", "view 1.2"));
  EXPECT_THAT(scene.passed_on, ElementsAre("on 1.2: bucket 3.0"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(PlannedView, NextChangeMayComeBeforeTheViewBegins) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).replica(own_bucket(kFirstView, 5));
  scene.root(halt(kSecond, true)).root(view(kSecond, {0, 1, 2}, 4)).root(halt(kThird, true));
  scene.replica(own_header(kFirstView, 1));
  come_round(scene);
  scene.replica(own_bucket(kSecond, 5, 4)).root(view(kThird, {0, 1, 2}, 4));
  EXPECT_THAT(scene.run(),
              ElementsAre("view 1.1", "halted 1.2 at 3, before 4", "halted 1.3 at 3, before 4",
                          "sum 3.0: 42", "header 3.0", "view 1.2", "view 1.3"));
  EXPECT_THAT(scene.passed_on, Not(Contains("on 1.2: bucket 4.0")));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(PlannedView, TwoThatBeginAtOneStepAreTakenOneBehindTheOther) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).replica(own_bucket(kFirstView, 5));
  scene.root(halt(kSecond, true)).root(view(kSecond, {0, 1, 2}, 4)).root(halt(kThird, true));
  scene.root(view(kThird, {0, 1, 2}, 4)).replica(own_header(kFirstView, 1));
  come_round(scene);
  scene.replica(own_bucket(kThird, 5, 4));
  EXPECT_THAT(scene.run(),
              ElementsAre("view 1.1", "halted 1.2 at 3, before 4", "halted 1.3 at 3, before 4",
                          "sum 3.0: 42", "header 3.0", "view 1.2", "view 1.3"));
  EXPECT_THAT(scene.passed_on, Contains("on 1.3: bucket 4.0"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

// Members 1, 2 and 3 lack step 3 in the second View; 0 gives it to 1 and 2, and 1 to 3.
TEST(PlannedView, MemberThatStillLacksAStepPassesItOnBeforeItTakesTheNextView) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2, 3})).root(halt(kSecond)).newcomer_wakes();
  scene.root(view(kSecond, {0, 1, 2, 3}, 4, {4, 3, 3, 3})).root(halt(kThird, true));
  scene.root(view(kThird, {0, 1, 2, 3}, 4));
  scene.other(ring_bucket(kSecond, 42)).other(ring_header(kSecond));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3", "halted 1.3 at 3",
                                       "sum 3.0: 42", "header 3.0", "view 1.2", "view 1.3"));
  EXPECT_THAT(scene.taught, ElementsAre("gives 1.2: bucket 3.0", "gives 1.2: header 3.0"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(PlannedView, MemberThatItIsWithoutFinishesWhatIsBeforeAndNothingElse) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).replica(own_bucket(kFirstView, 5));
  scene.root(halt(kSecond, true)).root(view(kSecond, {0, 2}, 4));
  scene.replica(own_header(kFirstView, 0));
  come_round(scene);
  scene.replica(own_bucket(kFirstView, 5, 4));
  EXPECT_THAT(scene.run(),
              ElementsAre("view 1.1", "halted 1.2 at 3, before 4", "sum 3.0: 42", "header 3.0"));
  EXPECT_THAT(scene.passed_on, ElementsAre("on 1.1: bucket 3.0", "on 1.1: header 3.0",
                                           "gives 1.1: bucket 3.0", "gives 1.1: header 3.0"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

// Its head has been lost, and the next one does not know that it was to leave.
TEST(PlannedView, MemberThatHasPartedGoesOnInAViewOfAnotherHead) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(halt(kSecond, true)).root(view(kSecond, {0, 2}, 3));
  scene.root(halt({2, 1})).root(view({2, 1}, {0, 1}, 3)).replica(own_bucket({2, 1}, 5));
  EXPECT_THAT(scene.run(),
              ElementsAre("view 1.1", "halted 1.2 at 3", "halted 2.1 at 3", "view 2.1"));
  EXPECT_THAT(scene.passed_on, ElementsAre("on 2.1: bucket 3.0"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(PlannedView, MemberTellsWhenItNeedsOneNoMoreThatHasParted) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).replica(own_bucket(kFirstView, 5));
  scene.root(halt(kSecond, true)).root(view(kSecond, {1, 2}, 4));
  scene.replica(own_header(kFirstView, 1));
  come_round(scene);
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3, before 4", "sum 3.0: 42",
                                       "entered 1.2", "header 3.0", "view 1.2"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(PlannedView, LossBeforeItBeginsLeavesNothingOfIt) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).replica(own_bucket(kFirstView, 5));
  scene.root(halt(kSecond, true)).root(view(kSecond, {0, 1, 2}, 4)).root(halt(kThird));
  scene.replica(own_header(kFirstView, 1)).root(view(kThird, {0, 1}, 3));
  EXPECT_THAT(scene.run(),
              ElementsAre("view 1.1", "halted 1.2 at 3, before 4", "halted 1.3 at 3", "view 1.3"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

// It keeps its only credit, so more than cluster.replay waits for it soon.
TEST(PlannedView, NewcomerIsNotTooSlowWhileItIsLetIn) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(Message::of(NeighbourMet{"member.3"}));
  scene.root(Message::of(Teach{3, true})).replica(own_bucket(kFirstView, 5));
  scene.root(halt(kSecond, true)).replica(own_header(kFirstView, 1));
  come_round(scene);
  scene.root(view(kSecond, {0, 1, 2, 3}, 4)).newcomer_wakes();
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "share with 3", "halted 1.2 at 3, before 4",
                                       "sum 3.0: 42", "header 3.0", "view 1.2"));
  EXPECT_THAT(scene.taught, Contains("gives 0.1: header 3.0"));
}

}  // namespace
}  // namespace troupe::actors
