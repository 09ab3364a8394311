// What a Reducer makes of steps of a worker, which the members of a site make among themselves.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/actors/reducer_scene.h"

namespace troupe::actors {
namespace {

using pipeline::View;
using pipeline::ViewId;
using runtime::Message;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Three workers of two parts make two steps each in an outer step: 6 and 7 in the outer step 3.
Scene scene_of_sites() {
  Scene scene;
  scene.sites.sites = {3, 2, 1, {}};
  scene.sites.steps = 2;
  scene.sites.micro_batches = 3;
  scene.sites.events = 0;
  return scene;
}

// The parts of worker 0 are those of the first two owners, and so on.
Message view_of_sites(ViewId id, std::vector<std::uint32_t> ring,
                      std::vector<std::uint32_t> owners = {0, 1, 0, 2, 2, 2},
                      std::uint64_t first_step = 3) {
  View view = *view_of(std::move(ring), 6, 1, first_step);
  view.id = id;
  view.owners = std::move(owners);
  return Message::of(ViewMessage{std::make_shared<const View>(std::move(view))});
}

// The sums of a step of worker 0 come back as 42.
void make_step_of_worker(Scene& scene, ViewId id, std::uint64_t step) {
  scene.replica(own_bucket(id, 5, step, 0)).replica(own_header(id, 1, step, 0));
  scene.other(ring_bucket(id, 42, step, true, 0)).other(ring_header(id, step, true, 0));
}

TEST(ReducerSite, StepOfAWorkerIsNoneThatOthersLack) {
  Scene scene = scene_of_sites();
  scene.root(view_of_sites(kFirstView, {0, 1, 2})).root(Message::of(NeighbourMet{"member.3"}));
  scene.root(Message::of(Teach{3, true}));
  make_step_of_worker(scene, kFirstView, 6);
  scene.root(halt(kSecond)).newcomer_wakes();
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "share with 3", "sum 6.0 of worker 0: 42",
                                       "header 6.0 of worker 0", "halted 1.2 at 3"));
  EXPECT_THAT(scene.passed_on,
              ElementsAre("on 1.1: bucket 6.0 of worker 0", "on 1.1: header 6.0 of worker 0"));
  EXPECT_THAT(scene.taught, ElementsAre("lesson from 3"));
  EXPECT_EQ(scene.kept_bytes, 0U);
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

// Sound members send none of these.
TEST(ReducerSite, StepThatThisMemberHasNoPartOfIsRefused) {
  struct {
    std::uint64_t step;
    std::uint32_t worker;
  } const refused[] = {{6, 1}, {6, 2}, {6, 3}, {5, 0}, {10, 0}};
  for (const auto& [step, worker] : refused) {
    const std::string what = fmt::format("contributed step {} of worker {}", step, worker);
    for (const bool by_replica : {false, true}) {
      Scene scene = scene_of_sites();
      scene.root(view_of_sites(kFirstView, {0, 1, 2}));
      if (by_replica) {
        scene.replica(own_bucket(kFirstView, 5, step, worker));
      } else {
        scene.other(ring_bucket(kFirstView, 40, step, false, worker));
      }
      scene.run();
      ASSERT_TRUE(scene.end.error) << what;
      EXPECT_THAT(scene.end.error->message, HasSubstr(what));
    }
  }
}

TEST(ReducerSite, PlannedChangeWaitsForTheOuterStepThatItsSiteHasBegun) {
  Scene scene = scene_of_sites();
  scene.root(view_of_sites(kFirstView, {0, 1, 2})).replica(own_bucket(kFirstView, 5, 7, 0));
  scene.root(halt(kSecond, true));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "halted 1.2 at 3, before 4"));
  // The other one of the site has had the sums of the outer step 3 already.
  Scene ahead = scene_of_sites();
  ahead.root(view_of_sites(kFirstView, {1, 0, 2}));
  ahead.other(ring_bucket(kFirstView, 40, 8, false, 0)).root(halt(kSecond, true));
  EXPECT_THAT(ahead.run(), ElementsAre("view 1.1", "halted 1.2 at 3, before 5"));
}

// Three turns are an iteration: steps 3 to 5 are those of iteration 1, and 9 is the first of 3.
TEST(ReducerSite, PlannedChangeWaitsForTheIterationOfWhichItsSiteHasBegunAWorker) {
  const auto halted_behind = [](std::uint64_t step_of_worker) {
    Scene scene = scene_of_sites();
    scene.sites.turns = 3;
    scene.root(view_of_sites(kFirstView, {0, 1, 2}));
    scene.replica(own_bucket(kFirstView, 5, step_of_worker, 0)).root(halt(kSecond, true));
    return scene.run();
  };
  EXPECT_THAT(halted_behind(3), ElementsAre("view 1.1", "halted 1.2 at 3, before 6"));
  EXPECT_THAT(halted_behind(4), ElementsAre("view 1.1", "halted 1.2 at 3, before 9"));
}

TEST(ReducerSite, StepsOfItsSiteEndWithTheOuterStepBeforeAPlannedView) {
  Scene scene = scene_of_sites();
  scene.root(view_of_sites(kFirstView, {0, 1, 2}));
  make_step_of_worker(scene, kFirstView, 6);
  scene.root(halt(kSecond, true)).root(view_of_sites(kSecond, {0, 1, 2}, {0, 1, 0, 2, 2, 2}, 4));
  make_step_of_worker(scene, kFirstView, 7);
  scene.replica(own_bucket(kFirstView, 5)).replica(own_header(kFirstView, 1));
  scene.other(ring_bucket(kFirstView, 42)).replica(own_bucket(kFirstView, 5, 8, 0));
  scene.other(ring_header(kFirstView));
  make_step_of_worker(scene, kSecond, 8);
  EXPECT_THAT(scene.run(),
              ElementsAre("view 1.1", "sum 6.0 of worker 0: 42", "header 6.0 of worker 0",
                          "halted 1.2 at 3, before 4", "sum 7.0 of worker 0: 42",
                          "header 7.0 of worker 0", "sum 3.0: 42", "header 3.0", "view 1.2",
                          "sum 8.0 of worker 0: 42", "header 8.0 of worker 0"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

// Member 2 takes the part of member 0, and is in the new View before this one.
TEST(ReducerSite, LostMembersPartIsTakenInTheNextViewFromTheFirstStepOn) {
  Scene scene = scene_of_sites();
  scene.root(view_of_sites(kFirstView, {0, 1, 2}));
  make_step_of_worker(scene, kFirstView, 6);
  scene.replica(own_bucket(kFirstView, 5, 7, 0)).root(halt(kSecond));
  scene.other(ring_bucket(kSecond, 40, 6, false, 0)).other(ring_header(kSecond, 6, false, 0));
  scene.root(view_of_sites(kSecond, {1, 2}, {2, 1, 2, 2, 2, 2}));
  // Late ones of the View before.
  scene.other(ring_bucket(kFirstView, 99, 7, true, 0)).replica(own_header(kFirstView, 1, 7, 0));
  scene.replica(own_bucket(kSecond, 2, 6, 0)).replica(own_header(kSecond, 0, 6, 0));
  EXPECT_THAT(scene.run(), ElementsAre("view 1.1", "sum 6.0 of worker 0: 42",
                                       "header 6.0 of worker 0", "halted 1.2 at 3", "view 1.2",
                                       "sum 6.0 of worker 0: 42", "header 6.0 of worker 0"));
  EXPECT_THAT(scene.passed_on,
              ElementsAre("on 1.1: bucket 6.0 of worker 0", "on 1.1: header 6.0 of worker 0",
                          "on 1.1: bucket 7.0 of worker 0", "gives 1.2: bucket 6.0 of worker 0",
                          "gives 1.2: header 6.0 of worker 0"));
  EXPECT_FALSE(scene.end.error) << scene.end.error->message;
}

TEST(ReducerSite, WorkerWithAllPartsHereHasNoStepsInASite) {
  const auto say = [](Scene& scene, ViewId view) {
    scene.root(view_of_sites(kFirstView, {0, 1, 2})).root(halt(kSecond));
    scene.root(view_of_sites(kSecond, {1, 2}, {1, 1, 2, 2, 2, 2}));
    scene.other(ring_bucket(view, 42, 6, false, 0)).run();
  };
  Scene late = scene_of_sites(), wrong = scene_of_sites();
  say(late, kFirstView);
  EXPECT_FALSE(late.end.error) << late.end.error->message;
  say(wrong, kSecond);
  ASSERT_TRUE(wrong.end.error);
  EXPECT_THAT(wrong.end.error->message, HasSubstr("contributed step 6 of worker 0"));
}

}  // namespace
}  // namespace troupe::actors
