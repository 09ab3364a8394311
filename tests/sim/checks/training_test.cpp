#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "pipeline/checkpoint/checkpoint_folder.h"
#include "tests/sim/checks/head_deaths.h"
#include "tests/sim/training/training_play.h"
#include "tests/support/stride.h"

namespace troupe::sim {
namespace {

using runtime::ErrorKind;
using ::testing::HasSubstr;

// The seed of a run of three members in which nothing else happens.
constexpr std::uint64_t kSweepSeed = 7;

std::uint32_t members_of(std::uint64_t seed) { return 1 + static_cast<std::uint32_t>(seed % 3); }

// Goes on from the newest state on the disk, undisturbed, with another number of members.
std::string hash_when_resumed(std::uint64_t seed, runtime::Disk& disk) {
  const TrainingEnd end = play_training(stage(), seed + 1000, members_of(seed + 1),
                                        stage().newest_state(disk), disk, Fate::kNothing);
  EXPECT_FALSE(end.head_error) << end.head_error->message;
  return hash_of(end.state);
}

TEST(SimulatedTraining, EndsInTheSameStateWhateverTroublesItHas) {
  const std::string expected = stage().undisturbed().text();
  for (std::uint64_t seed = 0; seed < 150; seed += stride(5)) {
    SimDisk disk;
    const Fate fate = seed % 4 == 0 ? Fate::kNothing : Fate::kShortTroubles;
    const TrainingEnd end =
        play_training(stage(), seed, members_of(seed), stage().initial_state(), disk, fate);
    ASSERT_EQ(fault_of(stage(), end, true), "") << "seed " << seed;
    ASSERT_EQ(hash_of(stage().newest_state(disk)), expected) << "seed " << seed;
  }
}

// In one ring; of a ring of rings each has one more, in its column. A newcomer stands in the ring
// behind the last one, and has met its teacher as well.
TEST(SimulatedTraining, MembersAreConnectedToThoseBesideThemInTheRingAndToTeachersAlone) {
  const char* const sections =
      "train: {micro_batch: 2, micro_batches: 9, epochs: 10}\n"
      "actors: {validator: {every: none}, checkpointer: {every: none}}\n"
      "cluster: {joiners: 1}\n";
  using Pairs = std::set<std::pair<ProcessId, ProcessId>>;
  Pairs ring;
  for (ProcessId member = 1; member <= 8; ++member) {
    ring.insert(std::minmax(member, 1 + member % 8));
  }
  TrainingStage in_a_ring(sections), in_rows(sections, RingOrder::kDescending);
  const auto met = [](TrainingStage& stage, const std::vector<TimePoint>& joins) {
    SimDisk disk;
    const TrainingEnd end =
        play_training(stage, kSweepSeed, 8, stage.initial_state(), disk, Fate::kNothing, {}, joins);
    EXPECT_EQ(fault_of(stage, end, true), "");
    EXPECT_EQ(end.joined, joins.size());
    return end.met;
  };
  EXPECT_EQ(met(in_a_ring, {}), ring);
  EXPECT_GT(met(in_rows, {}).size(), 8U);
  EXPECT_LE(met(in_rows, {}).size(), 16U);
  Pairs with_newcomer = ring;
  with_newcomer.insert({{1, 9}, {8, 9}});
  const Pairs then = met(in_a_ring, {TimePoint{0} + std::chrono::milliseconds(100)});
  EXPECT_TRUE(std::ranges::includes(then, with_newcomer));
  EXPECT_LE(then.size(), with_newcomer.size() + 1)
      << "of one that has a step and one that lacks it";
}

// tests/runtime/introduction_test.cpp has what becomes of two that differ in one of them.
TEST(SimulatedTraining, MembersHaveToAgreeOnTopologyPlanNumericsAndData) {
  std::vector<std::string> names;
  for (const runtime::Term& term : terms_of(stage().setup(2))) names.push_back(term.name);
  EXPECT_THAT(names,
              ::testing::ElementsAre("topology", "plan", "numerics class", "data fingerprint"));
}

// Its gradients are as finite as the others', and every member applies the same sum of them.
TEST(SimulatedTraining, MemberThatComputesOtherwiseIsFoundAndNamed) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimDisk disk;
    const std::uint32_t members = 2 + static_cast<std::uint32_t>(seed % 3);
    const TrainingEnd end = play_training(stage(), seed, members, stage().initial_state(), disk,
                                          Fate::kLastMemberComputesOtherwise);
    ASSERT_TRUE(end.over) << "seed " << seed;
    ASSERT_TRUE(end.head_error) << "seed " << seed;
    EXPECT_EQ(end.head_error->kind, ErrorKind::kDiverged) << end.head_error->message;
    EXPECT_THAT(end.head_error->message, HasSubstr("gave two results"));
    EXPECT_THAT(end.head_error->message, HasSubstr(fmt::format("member.{}", members - 1)));
  }
}

// Longer than it takes to go on without one that was told of, and shorter than dead_after.
constexpr auto kLong = std::chrono::milliseconds(500);

TrainingEnd play_deaths(const std::vector<Death>& deaths, std::uint32_t members = 3) {
  SimDisk disk;
  return play_training(stage(), kSweepSeed, members, stage().initial_state(), disk, Fate::kNothing,
                       deaths);
}

// Arrivals in the middle of the run, of one iteration and more.
struct Window {
  std::uint64_t first = 0, last = 0;
};
Window iteration_of_arrivals() {
  const std::uint64_t all = play_deaths({}).arrivals;
  const std::uint64_t iterations = stage().setup(3).iterations;
  return {all / 2, all / 2 + all / iterations + 10};
}

TEST(SimulatedTraining, MemberMayDieAfterEveryMessageOfAnIteration) {
  const Window window = iteration_of_arrivals();
  for (ProcessId victim = 1; victim <= 3; ++victim) {
    for (std::uint64_t after = window.first; after < window.last; after += stride(11)) {
      const TrainingEnd end = play_deaths({{after, victim, after % 2 == 0}});
      ASSERT_EQ(fault_of(stage(), end), "") << "member " << victim << " after " << after;
      ASSERT_EQ(end.changes, 1U) << "member " << victim << " after " << after;
    }
  }
}

TEST(SimulatedTraining, WhatAMemberSaidBeforeMayComeLongAfterTheOthersWentOn) {
  const Window window = iteration_of_arrivals();
  for (std::uint64_t after = window.first; after < window.last; after += 2) {
    const ProcessId victim = 1 + after / 2 % 3;
    const ProcessId one = 1 + victim % 3, other = 1 + one % 3;
    const bool back = after % 4 == 0;
    const TrainingEnd end =
        play_deaths({{after, victim, true, back ? other : one, back ? one : other, kLong}});
    ASSERT_EQ(fault_of(stage(), end), "") << "after " << after;
  }
}

// So the second dies before the first is noticed, while the others halt, while the only one that
// has a step's sums gives them away, and while what the first had to compute is computed again.
TEST(SimulatedTraining, SecondMemberMayDieAfterEveryMessageBehindTheFirst) {
  const Window window = iteration_of_arrivals();
  std::size_t changes = 0;
  for (std::uint64_t first = window.first; first < window.last; first += 13) {
    for (std::uint64_t later = 0; later < 40; later += stride(7)) {
      const ProcessId spared = 1 + (first + later) % 3;
      const ProcessId one = 1 + spared % 3, other = 1 + one % 3;
      const TrainingEnd end =
          play_deaths({{first, one, true}, {first + later, other, later % 2 == 0}});
      ASSERT_EQ(fault_of(stage(), end), "") << first << " and " << later;
      changes += end.changes;
    }
  }
  EXPECT_GT(changes, 100 / stride(7));
}

// Two replicas of every member contribute to steps of several buckets each.
TEST(SimulatedTraining, MembersMayDieInTheMiddleOfAStepOfSeveralBuckets) {
  TrainingStage stage(
      "train: {micro_batch: 2, micro_batches: 6, epochs: 4}\n"
      "actors: {replica: {count: 2}, reducer: {segment: 4KiB}, validator: {every: none}, "
      "checkpointer: {every: none}}\n",
      RingOrder::kAscending, {"model.generator.latent.size=300"});
  const auto play = [&](const std::vector<Death>& deaths) {
    SimDisk disk;
    return play_training(stage, kSweepSeed, 3, stage.initial_state(), disk, Fate::kNothing, deaths);
  };
  const std::uint64_t middle = play({}).arrivals / 2;
  for (std::uint64_t after = middle; after < middle + 240; after += stride(7)) {
    const ProcessId one = 1 + after % 3, other = 1 + (after + 1) % 3;
    const TrainingEnd end =
        play({{after, one, after % 2 == 0}, {after + after % 50, other, after % 4 < 2}});
    ASSERT_EQ(fault_of(stage, end), "") << "after " << after;
    ASSERT_GE(end.changes, 1U) << "after " << after;
  }
}

TEST(SimulatedTraining, MembersMayDieOneAfterTheOtherAllThroughTheRun) {
  const std::uint64_t arrivals = play_deaths({}, 4).arrivals;
  std::size_t changes = 0;
  for (std::uint64_t first = arrivals / 8; first < arrivals / 4; first += 3 * stride(3)) {
    const std::uint64_t pause = arrivals / 10 + first % 17;
    const ProcessId spared = 1 + first % 4;
    std::vector<Death> deaths;
    for (ProcessId victim = 1; victim <= 4; ++victim) {
      if (victim != spared) deaths.push_back({first + deaths.size() * pause, victim, true});
    }
    const TrainingEnd end = play_deaths(deaths, 4);
    ASSERT_EQ(fault_of(stage(), end), "") << "from " << first;
    changes += end.changes;
  }
  EXPECT_GT(changes, 100 / stride(3));
}

// While it comes, is sent the state, is taught, is let in, and computes its first.
TEST(SimulatedTraining, WhoJoinsOrTeachesMayDieAfterEveryMessageMeanwhile) {
  const auto play = [&](const std::vector<Death>& deaths) {
    SimDisk disk;
    const TimePoint start = std::chrono::milliseconds(100);
    return play_training(stage(), kSweepSeed, 2, stage().initial_state(), disk, Fate::kNothing,
                         deaths, {start, start + std::chrono::milliseconds(5)});
  };
  const TrainingEnd whole = play({});
  ASSERT_EQ(whole.joined, 2U);
  std::size_t joined = 0;
  for (const ProcessId victim : {1, 3, 4}) {
    for (std::uint64_t after = whole.arrivals / 6; after < whole.arrivals / 2;
         after += 2 * stride(9)) {
      const TrainingEnd end = play({{after, victim, after % 4 == 0}});
      ASSERT_EQ(fault_of(stage(), end), "") << "process " << victim << " after " << after;
      joined += end.joined;
    }
  }
  EXPECT_GT(joined, 200 / stride(9));
}

TEST(SimulatedTraining, LastMemberThatIsKilledEndsItWithWhatIsOnTheDiskResumable) {
  const std::string expected = stage().undisturbed().text();
  int lost = 0, resumed_later = 0;
  const std::uint64_t arrivals = play_training(stage(), 1, 1, stage().initial_state(),
                                               *std::make_unique<SimDisk>(), Fate::kNothing)
                                     .arrivals;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SimDisk disk;
    const TrainingEnd end =
        play_training(stage(), seed, 1, stage().initial_state(), disk, Fate::kNothing,
                      {{arrivals / 4 + seed * arrivals / 100, 1}});
    ASSERT_TRUE(end.over) << "seed " << seed;
    if (!end.head_error) {  // it was over by then
      ASSERT_EQ(hash_of(end.state), expected) << "seed " << seed;
      continue;
    }
    ++lost;
    ASSERT_EQ(end.head_error->kind, ErrorKind::kLostPeers)
        << "seed " << seed << ": " << end.head_error->message;
    const actors::StatePointer newest = stage().newest_state(disk);
    if (end.state) {
      ASSERT_EQ(hash_of(newest), hash_of(end.state)) << "seed " << seed;
    }
    if (newest->iteration > 0) ++resumed_later;
    ASSERT_EQ(hash_when_resumed(seed, disk), expected) << "seed " << seed;
  }
  EXPECT_GT(lost, 20);
  EXPECT_GT(resumed_later, 5);
}

TEST(SimulatedTraining, HeadMayBeLostAfterEveryMessageAndAnotherTakesItsPlace) {
  const std::uint64_t arrivals = play_deaths({}).arrivals;
  std::size_t heads = 0, changes = 0;
  for (std::uint64_t after = 1; after <= arrivals; after += (after < 150 ? 1 : 7) * stride(7)) {
    const auto returns = after % 3 == 0 ? kLate : kSoon;
    const TrainingEnd end = play_deaths({head_lost(after, returns)});
    ASSERT_EQ(fault_of(stage(), end, true), "") << "after " << after;
    heads += end.heads;
    changes += end.changes;
  }
  EXPECT_GT(heads, 200 / stride(7));
  EXPECT_GT(changes, 100 / stride(7));
}

// Longer than its members have patience, or nearly.
TEST(SimulatedTraining, HeadMayStandStillAfterEveryMessageAndAnotherTakesItsPlace) {
  const std::uint64_t arrivals = play_deaths({}).arrivals;
  std::size_t heads = 0;
  int plays = 0;
  for (std::uint64_t after = 1; after <= arrivals; after += 5 * stride(7), ++plays) {
    Death death;
    death.after = after;
    death.stands_still = std::chrono::milliseconds(1800 + 100 * (after % 13));
    const TrainingEnd end = play_deaths({death});
    ASSERT_EQ(fault_of(stage(), end, true), "") << "after " << after;
    heads += end.heads;
  }
  EXPECT_GT(heads, plays + plays / 2U) << "most were given up";
}

// For a while its messages get through to the head, and the head's to it do not.
TEST(SimulatedTraining, MemberThatAloneHasLostTheHeadIsLostAndNoOtherHeadTakesItsPlace) {
  for (std::uint64_t after = 20; after < 200; after += 9) {
    SimDisk disk;
    // A death that never comes, so that heads may be replaced.
    std::vector<Death> deaths{{after, 4, true, 0, 3, std::chrono::milliseconds(2300)}};
    deaths.push_back(head_lost(1'000'000));
    const TrainingEnd end = play_training(stage(), kSweepSeed, 4, stage().initial_state(), disk,
                                          Fate::kNothing, deaths);
    ASSERT_EQ(fault_of(stage(), end), "") << "after " << after;
    ASSERT_EQ(end.heads, 1U) << "after " << after;
  }
}

// Before the other is noticed, while it is away, while it asks, and when it has gone on.
TEST(SimulatedTraining, HeadAndAMemberMayDieTogetherAndOneBehindTheOther) {
  const Window window = iteration_of_arrivals();
  std::size_t heads = 0;
  for (std::uint64_t first = window.first; first < window.last; first += 9) {
    for (std::uint64_t later = 0; later < 48; later += (1 + first % 2) * stride(11)) {
      const bool member_first = later % 2 == 0;
      const ProcessId victim = 1 + (first + later / 2) % 3;
      const std::uint64_t one = member_first ? first + later : first;
      const std::uint64_t other = member_first ? first : first + later;
      const TrainingEnd end = play_deaths(
          {{other, victim, later % 4 < 2}, head_lost(one, later % 5 == 0 ? kLate : kSoon)});
      ASSERT_EQ(fault_of(stage(), end), "") << first << " and " << later;
      heads += end.heads;
    }
  }
  EXPECT_GT(heads, 200 / stride(11));
}

TEST(SimulatedTraining, HeadThatIsKilledEndsTheMembersAndWhatIsOnTheDiskGoesOn) {
  const std::string expected = stage().undisturbed().text();
  std::size_t killed = 0, torn = 0;
  for (std::uint64_t seed = 0; seed < 100; seed += stride(5)) {
    SimDisk disk;
    const TrainingEnd end = play_training(stage(), seed, members_of(seed), stage().initial_state(),
                                          disk, Fate::kHeadKilled);
    ASSERT_TRUE(end.over) << "seed " << seed;
    if (!end.killed) continue;
    ++killed;
    const auto names = pipeline::checkpoints_newest_first(*disk.list("run/checkpoints"));
    if (!names.empty() && seed % 2 == 0) {
      ++torn;
      disk.tear("run/checkpoints/" + names.front(), 100 * (seed + 1));
    }
    ASSERT_EQ(hash_when_resumed(seed, disk), expected) << "seed " << seed;
  }
  EXPECT_GT(killed, 20 / stride(5));
  EXPECT_GT(torn, 5 / stride(5));
}

TEST(SimulatedTraining, FullDiskIsToldAndWhatWasWrittenBeforeGoesOn) {
  const std::string expected = stage().undisturbed().text();
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SimDisk disk;
    disk.fill_after(static_cast<int>(seed % 3));
    const TrainingEnd end = play_training(stage(), seed, members_of(seed), stage().initial_state(),
                                          disk, Fate::kNothing);
    ASSERT_TRUE(end.over) << "seed " << seed;
    ASSERT_TRUE(end.head_error) << "seed " << seed;
    EXPECT_EQ(end.head_error->kind, ErrorKind::kData) << end.head_error->message;
    EXPECT_THAT(end.head_error->message, HasSubstr("no space left"));
    disk.fill_after(1000);
    ASSERT_EQ(hash_when_resumed(seed, disk), expected) << "seed " << seed;
  }
}

}  // namespace
}  // namespace troupe::sim
