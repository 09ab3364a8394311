// Members without data, which the head feeds: what comes from elsewhere is the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/sim/checks/head_deaths.h"
#include "tests/sim/training/training_play.h"
#include "tests/support/stride.h"

namespace troupe::sim {
namespace {

using namespace std::chrono_literals;

struct Cast {
  std::uint32_t members = 2;
  std::vector<TimePoint> joins{};
  std::set<std::uint32_t> remote{};
};

TrainingEnd play(const Cast& cast, const std::vector<Death>& deaths,
                 std::uint64_t seed = kPlainSeed, Fate fate = Fate::kNothing) {
  SimDisk disk;
  return play_training(stage(), seed, cast.members, stage().initial_state(), disk, fate, deaths,
                       cast.joins, cast.remote);
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

}  // namespace
}  // namespace troupe::sim
