#include "actors/sample_teller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Message;
using runtime::Script;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

// How many samples came in each message, when an actor has one turn every `every`, 20 in all.
std::vector<std::size_t> told(milliseconds every, bool linked,
                              std::function<void(Context&, SampleTeller&)> turn) {
  std::vector<std::size_t> sizes;
  SampleTeller teller;
  int turns = 0;
  Script root, monitor;
  root.start = [&](Context& context) {
    teller.start(context);
    context.after(milliseconds(0));
  };
  root.timer = [&](Context& context, runtime::TimerId) {
    if (++turns > 20) return context.finish();
    turn(context, teller);
    context.after(every);
  };
  monitor.receive = [&](Context&, const Message& message) {
    sizes.push_back(message.as<SampleMetrics>()->samples.size());
  };
  Play play;
  play.actor("replica.0", root).actor("monitor", monitor);
  if (linked) {
    play.link("replica.0", "samples", "monitor", "metrics", runtime::Lane::kMetrics, 64);
  }
  const auto end = play.run(1);
  EXPECT_FALSE(end.error) << end.error->message;
  return sizes;
}

void one_step(Context& context, SampleTeller& teller) {
  teller.add(context, "a", 1.0);
  teller.add(context, "b", 2.0);
  teller.tell(context);
}

TEST(SampleTeller, SlowStepsAreToldAtOnce) {
  EXPECT_EQ(told(kTellEvery, true, one_step), std::vector<std::size_t>(20, 2));
}

TEST(SampleTeller, QuickStepsGoTogether) {
  EXPECT_THAT(told(kTellEvery / 10, true, one_step), ElementsAre(2, 20));
}

TEST(SampleTeller, EachOfManyMembersTellsSeldom) {
  const auto one_of = [](std::size_t members) {
    return [members](Context& context, SampleTeller& teller) {
      teller.note_members(members);
      one_step(context, teller);
    };
  };
  EXPECT_EQ(told(kTellEvery, true, one_of(runtime::kPeersABeat)), std::vector<std::size_t>(20, 2));
  EXPECT_THAT(told(kTellEvery, true, one_of(10 * runtime::kPeersABeat)), ElementsAre(2, 20));
}

TEST(SampleTeller, NoMessageHoldsMoreThanItMay) {
  const auto many = [](Context& context, SampleTeller& teller) {
    for (std::size_t i = 0; i < 2 * kMostSamples + 1; ++i) teller.add(context, "a", 1.0);
  };
  const auto sizes = told(milliseconds(1), true, many);
  EXPECT_EQ(sizes, std::vector<std::size_t>(40, kMostSamples));
}

TEST(SampleTeller, WhatIsLeftIsToldWhenNoMoreComes) {
  const auto last = [turns = 0](Context& context, SampleTeller& teller) mutable {
    one_step(context, teller);
    if (++turns == 5) teller.tell_all(context);
    if (turns >= 5) turns = 5;
  };
  EXPECT_THAT(told(milliseconds(1), true, last), ElementsAre(2, 8));
}

TEST(SampleTeller, WithoutAListenerNothingIsKept) {
  const auto many = [](Context& context, SampleTeller& teller) {
    EXPECT_FALSE(teller.is_heard());
    one_step(context, teller);
    teller.tell_all(context);
  };
  EXPECT_THAT(told(milliseconds(1), false, many), IsEmpty());
}

}  // namespace
}  // namespace troupe::actors
