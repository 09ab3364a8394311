// Runs of which too few members are left for a while, and such as share out work anew.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/checks/head_deaths.h"
#include "tests/sim/training/training_play.h"
#include "tests/support/stride.h"

namespace troupe::sim {
namespace {

using namespace std::chrono_literals;

// Two members, and steps only with two.
TrainingStage& pair_stage() {
  static TrainingStage the_stage(
      "train: {micro_batch: 2, micro_batches: 4, epochs: 5}\n"
      "actors: {validator: {every: none}, checkpointer: {every: 1 epoch}}\n"
      "cluster: {joiners: 4, failure: {check_every: 8, min_members: 2}}\n");
  return the_stage;
}

TrainingEnd play_pair(const std::vector<Death>& deaths, const std::vector<TimePoint>& joins) {
  constexpr std::uint64_t kSeed = 7;
  SimDisk disk;
  return play_training(pair_stage(), kSeed, 2, pair_stage().initial_state(), disk, Fate::kNothing,
                       deaths, joins);
}

TEST(SimulatedWaiting, TooFewMembersMakeNoStepUntilOneJoins) {
  const std::uint64_t all = play_pair({}, {}).arrivals;
  std::size_t joined = 0;
  for (std::uint64_t after = all / 3; after < all + 10; after += 3 * stride(5)) {
    const ProcessId victim = 1 + after % 2;
    const TrainingEnd end = play_pair({{after, victim, after % 4 < 2}}, {10s});
    ASSERT_EQ(fault_of(pair_stage(), end), "") << "after " << after;
    ASSERT_TRUE(end.joined == 0 || end.simulated > 10s) << "too early, after " << after;
    joined += end.joined;
  }
  EXPECT_GT(joined, 100 / stride(5));
}

TEST(SimulatedWaiting, NewcomerMayDieWhileTheyWaitAndTheNextIsLetIn) {
  const std::uint64_t all = play_pair({}, {}).arrivals;
  std::size_t joined = 0;
  for (std::uint64_t later = 1; later < 60; ++later) {
    const std::vector<Death> deaths{{all / 2, 1 + later % 2}, {all / 2 + later, 3, later % 4 < 2}};
    const TrainingEnd end = play_pair(deaths, {10s, 20s});
    ASSERT_EQ(fault_of(pair_stage(), end), "") << "later " << later;
    joined += end.joined;
  }
  EXPECT_GE(joined, 59U);
}

TEST(SimulatedWaiting, HeadMayDieWhileTheyWait) {
  const std::uint64_t all = play_pair({}, {}).arrivals;
  for (std::uint64_t later = 1; later < 60; ++later) {
    std::vector<Death> deaths{{all / 2, 1}, {all / 2 + later, 0}};
    deaths.back().next_head = later % 2 == 0 ? 30ms : 2500ms;
    const TrainingEnd end = play_pair(deaths, {10s, 20s});
    ASSERT_EQ(fault_of(pair_stage(), end), "") << "later " << later;
    ASSERT_EQ(end.heads, 2U) << "later " << later;
    // Also when the first was only half taught, and the next head knows nothing of its teacher.
    ASSERT_EQ(end.joined, 1U) << "later " << later;
    ASSERT_TRUE(end.member_error) << "nobody told the other why it is not let in, later " << later;
  }
}

TEST(SimulatedWaiting, WhereNobodyCanJoinAnyMoreTheRunEndsWithItsStateSaved) {
  TrainingStage stage(
      "train: {micro_batch: 2, micro_batches: 4, epochs: 5}\n"
      "actors: {validator: {every: none}, checkpointer: {every: none}}\n"
      "cluster: {joiners: 0, failure: {restart: 0, min_members: 2}}\n");
  SimDisk disk;
  const TrainingEnd end =
      play_training(stage, 7, 2, stage.initial_state(), disk, Fate::kNothing, {{200, 1}});
  ASSERT_TRUE(end.over);
  ASSERT_TRUE(end.head_error);
  EXPECT_EQ(end.head_error->kind, runtime::ErrorKind::kLostPeers);
  EXPECT_NE(end.head_error->message.find("1 of at least 2 members"), std::string::npos)
      << end.head_error->message;
  EXPECT_TRUE(end.saved);
}

// Training that ends with its last epoch, and the same by train.stop, which nobody knows before.
const std::string kLength = "epochs: 5";
const std::string kEarly = "stop: {metric: d, min_delta: 1e6, patience: 4}";
const std::string kEarlyEnd = "epochs: 1000, " + kEarly;

// One of three dies while what another one says to the third is held up, at the end of the run: two
// of at least three members are left, and nobody can join. If one of them has made the last step,
// it hands over the sums, and the run is whole.
void expect_sums_handed_over(const std::string& length) {
  TrainingStage stage("train: {micro_batch: 2, micro_batches: 4, " + length +
                      "}\n"
                      "actors: {validator: {every: none}, checkpointer: {every: none}}\n"
                      "cluster: {joiners: 0, failure: {restart: 0, min_members: 3}}\n");
  const auto play = [&](const std::vector<Death>& deaths) {
    SimDisk disk;
    return play_training(stage, 7, 3, stage.initial_state(), disk, Fate::kNothing, deaths);
  };
  const std::uint64_t all = play({}).arrivals;
  std::size_t whole = 0, short_of_members = 0;
  for (std::uint64_t after = all * 8 / 10; after < all; after += stride(3)) {
    const TrainingEnd end = play({{after, 3, true, 1, 2, 300ms}});
    ASSERT_TRUE(end.over) << "after " << after;
    if (end.head_error) {
      ASSERT_NE(hash_of(end.state), stage.undisturbed().text())
          << "somebody had made the last step, after " << after;
      ++short_of_members;
    } else {
      ASSERT_EQ(fault_of(stage, end), "") << "after " << after;
      ++whole;
    }
  }
  EXPECT_GT(short_of_members, 0U);
  EXPECT_GT(whole, 0U);
}

TEST(SimulatedWaiting, TooFewMembersHandOverTheLastSums) { expect_sums_handed_over(kLength); }

TEST(SimulatedWaiting, TooFewMembersHandOverTheLastSumsOfAnEarlyEnd) {
  expect_sums_handed_over(kEarlyEnd);
}

// Members and heads, around the step after which training ends early.
TEST(SimulatedWaiting, AnyoneMayDieWhenTrainingEndsEarly) {
  TrainingStage stage("train: {micro_batch: 2, micro_batches: 4, " + kEarlyEnd +
                      "}\n"
                      "actors: {validator: {every: none}, checkpointer: {every: 1 epoch}}\n"
                      "cluster: {failure: {check_every: 8}}\n");
  const auto play = [&](const std::vector<Death>& deaths) {
    SimDisk disk;
    return play_training(stage, kPlainSeed, 3, stage.initial_state(), disk, Fate::kNothing, deaths);
  };
  const std::uint64_t all = play({}).arrivals;
  for (std::uint64_t after = all * 9 / 10; after <= all; after += stride(3)) {
    for (const Death& death : {Death{after, 2}, head_lost(after, kSoon), head_lost(after, kLate)}) {
      const TrainingEnd end = play({death});
      ASSERT_EQ(fault_of(stage, end), "") << "process " << death.process << " after " << after;
    }
  }
}

// Nobody begins an iteration that there may not be: a View that waits for it would never come.
TEST(SimulatedWaiting, MembersOfSitesMayJoinLeaveOrDieWhenTrainingEndsEarly) {
  TrainingStage stage("train: {micro_batch: 1, micro_batches: 4, epochs: 20, " + kEarly +
                      ", strategy: {kind: gem, sites: 2, steps: 2}}\n"
                      "actors: {validator: {every: none}, checkpointer: {every: none}}\n");
  const auto play = [&](const std::vector<Death>& deaths, const std::vector<TimePoint>& joins) {
    SimDisk disk;
    return play_training(stage, kPlainSeed, 4, stage.initial_state(), disk, Fate::kNothing, deaths,
                         joins);
  };
  const TrainingEnd plain = play({}, {});
  std::size_t joined = 0, too_late = 0;
  for (int part = 15; part < 40; part += static_cast<int>(stride(3))) {
    const TrainingEnd end = play({}, {TimePoint(plain.simulated * part / 100)});
    ASSERT_EQ(fault_of(stage, end), "") << "joined at part " << part;
    (end.joined > 0 ? joined : too_late) += 1;
  }
  EXPECT_GT(joined, 0U);
  EXPECT_GT(too_late, 0U);
  for (std::uint64_t after = plain.arrivals * 8 / 10; after < plain.arrivals;
       after += 3 * stride(5)) {
    Death leave{after, 2};
    leave.leaves = true;
    for (const Death& death : {leave, Death{after, 2}}) {
      ASSERT_EQ(fault_of(stage, play({death}, {})), "") << "after " << after;
    }
  }
}

// The one place that is left is taken by one that dies before it has learned, and is not given
// again.
TEST(SimulatedWaiting, WhenTheLastThatCouldJoinDiesTheRunEndsToo) {
  TrainingStage stage(
      "train: {micro_batch: 2, micro_batches: 4, epochs: 5}\n"
      "actors: {validator: {every: none}, checkpointer: {every: none}}\n"
      "cluster: {joiners: 0, failure: {restart: 1, min_members: 2}}\n");
  int ended = 0;
  for (std::uint64_t later = 1; later < 20; ++later) {
    SimDisk disk;
    const std::vector<Death> deaths{{200, 1}, {200 + later, 3}};
    const TrainingEnd end =
        play_training(stage, 7, 2, stage.initial_state(), disk, Fate::kNothing, deaths, {10s});
    ASSERT_TRUE(end.over) << "later " << later;
    if (!end.head_error) continue;  // it had joined, and was taught all
    EXPECT_EQ(end.head_error->kind, runtime::ErrorKind::kLostPeers) << end.head_error->message;
    EXPECT_TRUE(end.saved);
    ++ended;
  }
  EXPECT_GT(ended, 10);
}

// Two train and a third one learns when the second is told to end, and what the first says to the
// third is held up: so these two may be a View in which the third lacks steps that only the first
// has. That one is told to end then.
TEST(SimulatedWaiting, WhoAloneHasTheStepsMayBeToldToEndAndTheStateIsNotLost) {
  TrainingStage stage;
  const auto play = [&](const std::vector<Death>& deaths) {
    SimDisk disk;
    return play_training(stage, 7, 2, stage.initial_state(), disk, Fate::kNothing, deaths, {100ms});
  };
  const TrainingEnd whole = play({});
  ASSERT_EQ(whole.joined, 1U);
  std::size_t handed_over = 0;
  for (std::uint64_t first = whole.arrivals / 2; first < whole.arrivals * 9 / 10;
       first += stride(7)) {
    std::vector<Death> leave{{first, 2, true, 1, 3, 300ms}, {first + 1 + first % 40, 1}};
    for (Death& each : leave) each.leaves = true;
    const TrainingEnd end = play(leave);
    ASSERT_TRUE(end.over) << "from " << first;
    ASSERT_NE(end.state, nullptr) << "from " << first;
    ASSERT_TRUE(end.saved) << "from " << first;
    if (end.head_error) continue;  // nobody else was in the View
    ASSERT_EQ(fault_of(stage, end), "") << "from " << first;
    handed_over += end.joined;
  }
  EXPECT_GT(handed_over, 20 / stride(7));
}

// A teacher keeps a kilobyte for it, which is less than a step.
TEST(SimulatedWaiting, NewcomerTooSlowToLearnIsSentAwayAndTheOthersDoNotNotice) {
  TrainingStage stage(
      "train: {micro_batch: 2, micro_batches: 4, epochs: 40}\n"
      "actors: {validator: {every: none}, checkpointer: {every: none}}\n"
      "cluster: {replay: 1 KiB, failure: {check_every: 8}}\n");
  std::size_t sent_away = 0;
  for (std::uint64_t after = 840; after < 1100; after += 4 * stride(3)) {
    SimDisk disk;
    // The messages of member.1, which is nearest, to it are held up while it learns.
    const std::vector<Death> deaths{{after, 1, true, 2, 4, 1s}};
    const TrainingEnd end =
        play_training(stage, 7, 3, stage.initial_state(), disk, Fate::kNothing, deaths, {200ms});
    ASSERT_EQ(fault_of(stage, end), "") << "after " << after;
    const bool slow = end.member_error &&
                      end.member_error->message.find("learns more slowly") != std::string::npos;
    sent_away += slow ? 1 : 0;
  }
  EXPECT_GT(sent_away, 10 / stride(3));
}

// Their sums depend on who computes what, and theirs would differ with the speed of machines.
TEST(SimulatedSpeeds, AreNotLookedAtWhereTheyCouldChangeABitOrAreNotWanted) {
  const auto shares_anew = [](const std::string& sections) {
    TrainingStage stage("train: {micro_batch: 2, micro_batches: 4, epochs: 5}\n" + sections);
    return launch::coordinator_options(stage.setup(2), stage.initial_state()).shares_anew;
  };
  EXPECT_TRUE(shares_anew(""));
  EXPECT_FALSE(shares_anew("actors: {reducer: {reduction: int8}}\n"));
  EXPECT_FALSE(shares_anew("cluster: {rebalance: false}\n"));
  EXPECT_FALSE(shares_anew("cluster: {assign: [1, 1]}\n"));
}

}  // namespace
}  // namespace troupe::sim
