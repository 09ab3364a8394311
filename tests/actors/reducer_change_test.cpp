// What a Reducer makes of halts, Views, and messages of other Views than its own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/actors/reducer_scene.h"

namespace troupe::actors {
namespace {

using pipeline::View;
using pipeline::ViewId;
using runtime::ErrorKind;
using runtime::Message;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ReducerChange, WhatIsSaidOfALaterViewWaitsForIt) {
  Scene scene;
  // It is the second of two in this View, where the home is the first; member 0 begins.
  scene.other(ring_bucket(kSecond, 40, 3, false)).other(ring_header(kSecond, 3, false));
  scene.root(view(kFirstView, {0, 1, 2})).root(halt(kSecond)).root(view(kSecond, {1, 0}));
  scene.replica(own_bucket(kSecond, 2)).replica(own_header(kSecond, 0));
  EXPECT_THAT(scene.run(),
              ElementsAre("view 1.1", "halted 1.2 at 3", "view 1.2", "sum 3.0: 42", "header 3.0"));
  EXPECT_THAT(scene.passed_on, ElementsAre("gives 1.2: bucket 3.0", "gives 1.2: header 3.0"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

// That keeps its only credit; of the sums of step 3 nothing has left yet.
Scene with_newcomer() {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(Message::of(NeighbourMet{"member.3"}));
  scene.root(Message::of(Teach{3, true}))
      .replica(own_bucket(kFirstView, 5))
      .replica(own_header(kFirstView, 1));
  scene.other(ring_bucket(kFirstView, 42)).other(ring_header(kFirstView));
  return scene;
}

const std::vector<std::string> kHeardWithNewcomer{"view 1.1", "share with 3", "sum 3.0: 42",
                                                  "header 3.0"};

TEST(ReducerChange, NewcomerThatTooMuchWaitsForIsTaughtNoMore) {
  Scene scene = with_newcomer();
  scene.replica(own_bucket(kFirstView, 5, 4)).replica(own_header(kFirstView, 1, 4));
  scene.other(ring_bucket(kFirstView, 43, 4)).other(ring_header(kFirstView, 4));
  scene.newcomer_wakes();
  // The coordinator hears of it before or after the replica has what came first.
  EXPECT_THAT(scene.run(), testing::UnorderedElementsAreArray(then(
                               kHeardWithNewcomer, {"sum 4.0: 43", "header 4.0", "too slow: 3"})));
  EXPECT_THAT(scene.taught, ElementsAre("lesson from 3")) << "what waited is let go of";
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

// Nothing waits for it, and it learns from the step on that is next when it is met.
TEST(ReducerChange, NewcomerThatCannotBeReachedIsTaughtNothingUntilItIs) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(Message::of(NeighbourMet{"member.2"}));
  scene.root(Message::of(Teach{3, true}));
  for (const std::uint64_t step : {3, 4}) {
    scene.replica(own_bucket(kFirstView, 5, step)).replica(own_header(kFirstView, 1, step));
    scene.other(ring_bucket(kFirstView, 42, step)).other(ring_header(kFirstView, step));
  }
  scene.root(halt(kSecond)).root(Message::of(NeighbourMet{"member.3"})).newcomer_wakes();
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "sum 3.0: 42", "header 3.0", "sum 4.0: 42",
                                       "header 4.0", "halted 1.2 at 5", "share with 3"));
  EXPECT_THAT(scene.taught, ElementsAre("lesson from 5"));
  EXPECT_EQ(scene.kept_bytes, 8U) << "the sums of the newest step, and no lessons";
}

TEST(ReducerChange, AnotherProcessOfAMemberThatIsTaughtLearnsFromTheBeginning) {
  Scene scene = with_newcomer();
  scene.root(Message::of(Teach{3, false, 1})).root(Message::of(NeighbourMet{"member.3.2"}));
  scene.root(Message::of(Teach{3, true, 2})).newcomer_wakes();
  EXPECT_THAT(scene.run(), Contains("share with 3 as 2"));
  EXPECT_THAT(scene.taught, ElementsAre("lesson from 3", "lesson from 4"))
      << "what waited for the one before it is let go of";
}

// The next head does not know who learned, and may have another process learn from another member.
TEST(ReducerChange, PupilsOfAnotherHeadAreTaughtNoMore) {
  Scene scene = with_newcomer();
  scene.root(halt({2, 1})).newcomer_wakes();
  EXPECT_THAT(scene.run(), Contains("halted 2.1 at 4"));
  EXPECT_THAT(scene.taught, ElementsAre("lesson from 3")) << "what waited is let go of";
}

// No View of that head was told, as too few members are left.
TEST(ReducerChange, PupilsOfTheHeadThatHaltsAgainAreTaughtOn) {
  constexpr ViewId kOfNext{2, 2};
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(Message::of(NeighbourMet{"member.3"}));
  scene.root(halt({2, 1})).root(Message::of(Teach{3, true})).root(halt(kOfNext));
  scene.root(view(kOfNext, {0, 1, 2})).newcomer_wakes();
  scene.replica(own_bucket(kOfNext, 5)).replica(own_header(kOfNext, 1));
  scene.other(ring_bucket(kOfNext, 42)).other(ring_header(kOfNext));
  EXPECT_THAT(scene.run(), Contains("sum 3.0: 42"));
  EXPECT_GT(scene.taught.size(), 1U) << "no more than the lesson's beginning";
}

// Too few are left for a View without the lost member.
TEST(ReducerChange, AnotherProcessOfALostMemberLearnsWhileTheOthersWait) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 3})).root(halt(kSecond));
  scene.root(Message::of(NeighbourMet{"member.3.2"})).root(Message::of(Teach{3, true, 2}));
  scene.newcomer_wakes();
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3", "share with 3 as 2"));
  EXPECT_THAT(scene.taught, ElementsAre("lesson from 3"));
}

TEST(ReducerChange, NewcomerThatIsGoneBeforeItIsMetIsNotTaught) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(Message::of(Teach{3, true}));
  scene.root(Message::of(Teach{3, false})).root(Message::of(NeighbourMet{"member.3"}));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1"));
  EXPECT_THAT(scene.taught, testing::IsEmpty());
}

// Its teacher lacks the step before the View, and passes it on as soon as it has it.
TEST(ReducerChange, NewcomerThatIsInAViewIsNotCutOffByItsTeacher) {
  Scene scene = with_newcomer();
  View second = *view_of({0, 1, 2, 3}, 3, 1, 5);
  second.id = kSecond;
  second.reached = {5, 4, 5, 3};
  second.newcomers = {3};
  scene.root(halt(kSecond));
  scene.root(Message::of(ViewMessage{std::make_shared<const View>(std::move(second))}));
  scene.other(ring_bucket(kSecond, 43, 4)).other(ring_header(kSecond, 4)).newcomer_wakes();
  EXPECT_EQ(scene.run(),
            then(kHeardWithNewcomer, {"halted 1.2 at 4", "sum 4.0: 43", "header 4.0", "view 1.2"}));
  EXPECT_GE(scene.kept_bytes, 16U) << "step 3 for those that lack it, and once more on its way";
  EXPECT_THAT(scene.taught,
              ElementsAre("lesson from 3", "gives 0.1: bucket 3.0", "gives 0.1: header 3.0",
                          "gives 0.1: bucket 4.0", "gives 0.1: header 4.0"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

// Each of these would be refused if it were of this View.
TEST(ReducerChange, WhatIsSaidOfAnEarlierViewChangesNothing) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(halt(kSecond)).root(view(kSecond, {1, 0}));
  scene.replica(own_bucket(kFirstView, 1, 99)).replica(own_header(kFirstView, 1, 99));
  scene.other(ring_bucket(kFirstView, 1, 99)).other(ring_header(kFirstView, 99));
  scene.other(ring_bucket(kFirstView, 1, 2)).other(ring_header(kFirstView, 2));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3", "view 1.2"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(ReducerChange, WhoHaltsTellsHowMuchItKeepsForOthers) {
  Scene nothing;
  nothing.root(view(kFirstView, {0, 1, 2})).replica(own_bucket(kFirstView, 5)).root(halt(kSecond));
  nothing.run();
  EXPECT_EQ(nothing.kept_bytes, 0U) << "what is under way is let go of";
  Scene a_step;
  make_step(a_step);
  a_step.root(halt(kSecond)).run();
  EXPECT_EQ(a_step.kept_bytes, 8U);
}

TEST(ReducerChange, HaltedItReducesNothing) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).replica(own_bucket(kFirstView, 5)).root(halt(kSecond));
  scene.replica(own_header(kFirstView, 1)).other(ring_bucket(kFirstView, 42));
  scene.other(ring_header(kFirstView, 99));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3"));
  EXPECT_THAT(scene.passed_on, ElementsAre("on 1.1: bucket 3.0"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(ReducerChange, OvertakenHaltsAndViewsAreLetGo) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(halt(kThird)).root(halt(kSecond));
  scene.root(view(kSecond, {1, 0})).root(view(kThird, {1, 2})).root(view(kThird, {1, 2}));
  scene.root(halt(kThird)).root(view(kFirstView, {0, 1, 2}));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.3 at 3", "view 1.3"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(ReducerChange, WhoHasTheNewestStepGivesItToThoseThatLackIt) {
  Scene scene;
  make_step(scene);
  scene.root(halt(kSecond)).root(view(kSecond, {1, 2, 0}, 4, {4, 3, 3}));
  EXPECT_EQ(scene.run(), then(kHeardOfIt, {"halted 1.2 at 4", "view 1.2"}));
  EXPECT_EQ(scene.passed_on, then(kPassedOn, {"gives 1.2: bucket 3.0", "gives 1.2: header 3.0",
                                              "gives 1.2: bucket 3.0", "gives 1.2: header 3.0"}));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(ReducerChange, WhereAnotherGivesItToAllThatLackItNobodyElseDoes) {
  Scene scene;
  make_step(scene);
  scene.root(halt(kSecond)).root(view(kSecond, {0, 1, 2}, 4, {4, 4, 3}));
  EXPECT_EQ(scene.run(), then(kHeardOfIt, {"halted 1.2 at 4", "view 1.2"}));
  EXPECT_EQ(scene.passed_on, kPassedOn);
}

TEST(ReducerChange, WhoLacksTheNewestStepGetsItBeforeTheView) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).replica(own_bucket(kFirstView, 5)).root(halt(kSecond));
  scene.root(view(kSecond, {1, 0}, 4, {3, 4}));
  // The other one is in the next step already.
  scene.other(ring_bucket(kSecond, 10, 4, false));
  scene.other(ring_bucket(kSecond, 42)).other(ring_header(kSecond));
  scene.replica(own_bucket(kSecond, 7, 4));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3", "sum 3.0: 42", "header 3.0",
                                       "view 1.2", "sum 4.0: 17"));
  EXPECT_THAT(scene.passed_on, ElementsAre("on 1.1: bucket 3.0", "gives 1.2: bucket 4.0"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

// Member 0 gives it to member 1, and is not connected to the others that lack it.
TEST(ReducerChange, WhoIsGivenTheNewestStepGivesItToAnotherThatLacksIt) {
  for (const bool is_last : {false, true}) {
    Scene scene;
    scene.root(view(kFirstView, {0, 1, 2, 3})).root(halt(kSecond)).newcomer_wakes();
    scene.root(is_last ? view(kSecond, {2, 3, 1, 0}, 4, {3, 3, 3, 4})
                       : view(kSecond, {1, 2, 3, 0}, 4, {3, 3, 3, 4}));
    scene.other(ring_bucket(kSecond, 42)).other(ring_header(kSecond));
    EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3", "sum 3.0: 42", "header 3.0",
                                         "view 1.2"));
    EXPECT_THAT(scene.passed_on, ElementsAre());
    EXPECT_EQ(scene.taught.size(), is_last ? 0U : 2U);
    EXPECT_FALSE(scene.end.error) << scene.end.error->message;
  }
}

// The giver is lost before all is given; it counts as not given.
TEST(ReducerChange, WhoIsHaltedWhileItGetsAStepStillLacksIt) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2})).root(halt(kSecond));
  scene.root(view(kSecond, {0, 2, 1}, 4, {4, 4, 3})).other(ring_bucket(kSecond, 42));
  scene.root(halt(kThird)).root(view(kThird, {2, 1}, 4, {4, 3}));
  scene.other(ring_header(kSecond)).other(ring_bucket(kThird, 42)).other(ring_header(kThird));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3", "sum 3.0: 42",
                                       "halted 1.3 at 3", "sum 3.0: 42", "header 3.0", "view 1.3"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(ReducerChange, LikelyViewOfANewcomerBeginsNothing) {
  Scene scene;
  scene.root(view(kLesson, {0, 1, 2})).root(halt(kSecond)).root(view(kSecond, {0, 1, 2}));
  EXPECT_THAT(scene.run(), ElementsAre("halted 1.2 at 0", "view 1.2"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

// Its replica had the state before, and no steps are made: the head has let it join.
TEST(ReducerChange, NewcomerThatIsHaltedBeforeItsLessonTellsOfThat) {
  Scene scene;
  scene.learns_first = true;
  scene.root(halt(kSecond)).root(halt(kThird)).other(Message::of(Lesson{3}));
  EXPECT_THAT(scene.run(), ElementsAre("halted 1.3 at 3"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
  Scene of_the_first;
  of_the_first.root(halt(kSecond));
  EXPECT_THAT(of_the_first.run(), ElementsAre("halted 1.2 at 0")) << "it has no lesson";
}

// Another newcomer came at the same time: what this one lacked came between its word and the View.
TEST(ReducerChange, WhoLearnedWhatItLackedSinceItWasHaltedTakesTheNextView) {
  const auto with_newcomer = [](ViewId id) {
    View view = *view_of({0, 1, 2}, 3, 1, 4);
    view.id = id;
    view.reached = {4, 3, 4};
    view.newcomers = {1};
    return Message::of(ViewMessage{std::make_shared<const View>(std::move(view))});
  };
  constexpr ViewId kLessons{0, 1};
  Scene scene;
  scene.other(Message::of(Lesson{3})).root(with_newcomer(kSecond)).root(halt(kThird));
  scene.other(ring_bucket(kLessons, 42)).other(ring_header(kLessons));
  scene.root(with_newcomer(kThird));
  const std::vector<std::string> heard = scene.run();
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
  ASSERT_FALSE(heard.empty());
  EXPECT_EQ(heard.back(), "view 1.3");
  EXPECT_THAT(heard, testing::Contains("halted 1.3 at 3"));
  EXPECT_THAT(heard, testing::Contains("header 3.0"));
}

void expect_fails(Scene& scene, const std::string& what) {
  scene.run();
  ASSERT_TRUE(scene.end.error) << what;
  EXPECT_EQ(scene.end.error->kind, ErrorKind::kLostPeers);
  EXPECT_THAT(scene.end.error->message, HasSubstr(what));
}

TEST(ReducerChange, FirstViewInWhichThisNodeLacksAStepIsRefused) {
  Scene scene;
  scene.root(view(kFirstView, {0, 1, 2}, 4, {3, 3, 4}));
  expect_fails(scene, "for which it should have made a step before");
}

TEST(ReducerChange, ViewThatIsNotForThisNodeIsRefused) {
  const auto refused = [](Message second, const std::string& what) {
    Scene scene;
    scene.root(view(kFirstView, {0, 1, 2})).root(halt(kSecond)).root(std::move(second));
    expect_fails(scene, "coordinator told of View 1.2, " + what);
  };
  refused(view(kSecond, {0, 2}), "that it is no member of");
  refused(view(kSecond, {0, 1}, 4), "for which it should be at another step than 3");
  refused(view(kSecond, {0, 1}, 3, {3, 2}), "for which it should be at another step than 3");
  refused(view(kSecond, {0, 1}, 3, {2, 3}), "for which it should have the sums of step 2");
  View strange = *view_of({0, 1}, 3, 1, 3);
  strange.id = kSecond;
  strange.owners[1] = 2;
  refused(Message::of(ViewMessage{std::make_shared<const View>(strange)}),
          "whose micro-batches are not those of its members");
  strange.owners = {0, 1};
  refused(Message::of(ViewMessage{std::make_shared<const View>(strange)}),
          "whose micro-batches are not those of its members");
}

TEST(ReducerChange, SumsThatNobodyLacksOrThatAreNoneAreRefused) {
  const auto lagging = [] {
    Scene scene;
    scene.root(view(kFirstView, {0, 1, 2})).root(halt(kSecond));
    return scene.root(view(kSecond, {1, 0}, 4, {3, 4}));
  };
  Scene nothing_lacks;
  nothing_lacks.root(view(kFirstView, {0, 1, 2})).other(ring_bucket(kFirstView, 42, 2));
  expect_fails(nothing_lacks, "other contributed step 2");
  Scene part = lagging();
  expect_fails(part.other(ring_bucket(kSecond, 42, 3, false)), "other contributed step 3");
  Scene header = lagging();
  expect_fails(header.other(ring_header(kSecond, 3, false)), "other contributed step 3");
  Scene twice = lagging();
  twice.other(ring_bucket(kSecond, 42));
  expect_fails(twice.other(ring_bucket(kSecond, 42)), "bucket 0 of step 3 wrongly");
}

}  // namespace
}  // namespace troupe::actors
