// Members without data, which the head feeds: what comes from elsewhere is the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/sim/training/training_play.h"
#include "tests/support/stride.h"

namespace troupe::sim {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// The seed of runs in which nothing is left to chance.
constexpr std::uint64_t kSeed = 7;
// Before members have given a head up, and after that.
constexpr Duration kSoon = 30ms, kLate = 2500ms;

struct Cast {
  std::uint32_t members = 2;
  std::vector<TimePoint> joins{};
  std::set<std::uint32_t> remote{};
};

TrainingEnd play(const Cast& cast, const std::vector<Death>& deaths, std::uint64_t seed = kSeed,
                 Fate fate = Fate::kNothing) {
  SimDisk disk;
  return play_training(stage(), seed, cast.members, stage().initial_state(), disk, fate, deaths,
                       cast.joins, cast.remote);
}

Death head_lost(std::uint64_t after, Duration next) {
  return {after, 0, false, 0, 0, Duration{0}, next};
}

TEST(RemoteData, RunOfMembersWithAndWithoutItEndsInTheSameState) {
  const Cast casts[] = {{1, {}, {0}},
                        {2, {}, {1}},
                        {3, {}, {0, 1, 2}},
                        {2, {100ms}, {2}},
                        {2, {100ms, 105ms}, {1, 2, 3}}};
  for (const Cast& cast : casts) {
    const TrainingEnd end = play(cast, {});
    ASSERT_EQ(fault_of(stage(), end, true), "");
    EXPECT_EQ(end.joined, cast.joins.size());
  }
}

// While it comes, learns, is fed, and takes over what another had.
TEST(RemoteData, NewcomerWithoutItMayDieAfterEveryMessage) {
  const Cast cast{2, {100ms}, {2}};
  const TrainingEnd whole = play(cast, {});
  ASSERT_EQ(whole.joined, 1U);
  std::size_t joined = 0;
  for (std::uint64_t after = whole.arrivals / 6; after < whole.arrivals * 9 / 10;
       after += 2 * stride(7)) {
    const TrainingEnd end = play(cast, {{after, 3, after % 4 == 0}});
    ASSERT_EQ(fault_of(stage(), end), "") << "after " << after;
    joined += end.joined;
  }
  EXPECT_GT(joined, 50 / stride(7));
}

// Its micro-batches go to one that has to be sent them, in iterations under way too.
TEST(RemoteData, WhoHasDataMayDieAfterEveryMessage) {
  const Cast cast{3, {}, {1, 2}};
  const std::uint64_t arrivals = play(cast, {}).arrivals;
  for (std::uint64_t after = arrivals / 4; after < arrivals / 2; after += stride(7)) {
    const TrainingEnd end = play(cast, {{after, 1, after % 2 == 0}});
    ASSERT_EQ(fault_of(stage(), end), "") << "after " << after;
    ASSERT_EQ(end.changes, 1U) << "after " << after;
  }
}

// The next one's loader knows nothing of what was sent, and what was sent may have arrived, be on
// its way, or be lost.
TEST(RemoteData, HeadMayBeLostAfterEveryMessageAndTheNextOneFeedsThemAnew) {
  const Cast casts[] = {{2, {}, {1}}, {2, {100ms}, {2}}, {2, {}, {0, 1}}};
  std::size_t heads = 0, changes = 0;
  for (const Cast& cast : casts) {
    const std::uint64_t arrivals = play(cast, {}).arrivals;
    // A newcomer that the last head has not met when the run ends waits for another one.
    const std::uint64_t last = cast.joins.empty() ? arrivals : arrivals * 3 / 4;
    for (std::uint64_t after = 1; after <= last; after += (after < 150 ? 2 : 5) * stride(11)) {
      const TrainingEnd end = play(cast, {head_lost(after, after % 3 == 0 ? kLate : kSoon)});
      ASSERT_EQ(fault_of(stage(), end, cast.joins.empty()), "") << "after " << after;
      heads += end.heads;
      changes += end.changes;
    }
  }
  EXPECT_GT(heads, 300 / stride(11));
  EXPECT_GT(changes, 150 / stride(11));
}

// Before the other is noticed, while it is away, while it asks, and when it has gone on.
TEST(RemoteData, HeadAndAMemberMayDieTogetherAndOneBehindTheOther) {
  const Cast cast{3, {}, {1, 2}};
  const std::uint64_t arrivals = play(cast, {}).arrivals;
  for (std::uint64_t first = arrivals / 3; first < arrivals / 2; first += 11) {
    for (std::uint64_t later = 0; later < 48; later += 3 * stride(7)) {
      const ProcessId victim = 1 + (first + later) % 3;
      const std::uint64_t member = later % 2 == 0 ? first : first + later;
      const std::uint64_t head = later % 2 == 0 ? first + later : first;
      const TrainingEnd end = play(
          cast, {{member, victim, later % 4 < 2}, head_lost(head, later % 5 == 0 ? kLate : kSoon)});
      ASSERT_EQ(fault_of(stage(), end), "") << first << " and " << later;
    }
  }
}

// Deaths of heads, members and newcomers in any order, with and without data; the first member is
// spared.
TEST(RemoteData, HeadsAndMembersComeAndDieInAnyOrderAndCostNoBit) {
  std::size_t joined = 0, heads = 0, never_began = 0;
  for (std::uint64_t seed = 0; seed < 300; seed += stride(7)) {
    Dice dice(seed);
    Cast cast;
    cast.members = static_cast<std::uint32_t>(1 + dice.below(3));
    cast.joins.resize(dice.below(4));
    for (TimePoint& join : cast.joins) join = dice.between(Duration{0}, 900ms);
    const std::size_t processes = cast.members + cast.joins.size();
    for (std::uint32_t member = 0; member < processes; ++member) {
      if (dice.below(2) == 0) cast.remote.insert(member);
    }
    std::vector<Death> deaths;
    for (ProcessId victim = 2; victim <= processes; ++victim) {
      if (dice.below(3) == 0) deaths.push_back({200 + dice.below(1500), victim, seed % 2 == 0});
    }
    for (std::uint64_t head = dice.below(4); head > 0; --head) {
      deaths.push_back(head_lost(100 + dice.below(1800), dice.between(1ms, kLate)));
    }
    const TrainingEnd end =
        play(cast, deaths, seed, seed % 2 == 0 ? Fate::kNothing : Fate::kShortTroubles);
    ASSERT_TRUE(end.over) << "seed " << seed;
    if (end.head_error && end.state == nullptr) {  // one had not come when it died
      ASSERT_THAT(end.head_error->message,
                  testing::AnyOf(HasSubstr("was killed"), HasSubstr("no member that trains")))
          << "seed " << seed;
      ++never_began;
      continue;
    }
    ASSERT_EQ(fault_of(stage(), end), "") << "seed " << seed;
    joined += end.joined;
    heads += end.heads;
  }
  EXPECT_LT(never_began, 40 / stride(7));
  EXPECT_GT(joined, 45 / stride(7));
  EXPECT_GT(heads, 350 / stride(7));
}

}  // namespace
}  // namespace troupe::sim
