// Heads that are lost in the middle of a change: what the next one goes by is what members tell it,
// and these do not know the same.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/checks/head_deaths.h"
#include "tests/sim/training/training_play.h"
#include "tests/support/stride.h"

namespace troupe::sim {
namespace {

using namespace std::chrono_literals;

TrainingEnd play(std::uint32_t members, const std::vector<Death>& deaths,
                 const std::vector<TimePoint>& joins = {}) {
  SimDisk disk;
  return play_training(stage(), kPlainSeed, members, stage().initial_state(), disk, Fate::kNothing,
                       deaths, joins);
}

// Nobody dies of it.
Death held_up(std::uint64_t after, ProcessId from, ProcessId to, Duration held) {
  return {after, 0, false, from, to, held, {}, Duration{0}};
}

// The fourth member is lost, the View without it does not get through to the second, and the third
// is lost with the head: the first has taken over what the other two, going by the View before,
// would share out in another way.
TEST(SimulatedNextHead, GoesOnFromTheNewestViewThatAnybodyIsIn) {
  const std::uint64_t middle = play(4, {}).arrivals / 2;
  for (std::uint64_t held = 20; held < 36; held += 2) {
    for (std::uint64_t lost = held + 1; lost < 52; lost += 2 * stride(3)) {
      const TrainingEnd end = play(4, {{middle, 4},
                                       held_up(middle + held, 0, 2, 500ms),
                                       {middle + lost, 3, false},
                                       head_lost(middle + lost)});
      ASSERT_EQ(fault_of(stage(), end), "") << held << " and " << lost;
      ASSERT_EQ(end.heads, 2U) << held << " and " << lost;
    }
  }
}

// Two members, and one that comes at `joins`: from one arrival on nothing gets from the first,
// which teaches the newcomer, to that, and with a later one the first is lost together with the
// head.
TrainingEnd lose_the_teacher(std::uint64_t held, std::uint64_t lost, TimePoint joins) {
  return play(2, {held_up(held, 1, 3, 10s), {lost, 1, false}, head_lost(lost)}, {joins});
}

// With which arrival it is in the View.
std::uint64_t let_in(TimePoint joins) {
  constexpr std::uint64_t kHeldBefore = 12;
  std::uint64_t before = 2 * kHeldBefore, after = play(2, {}, {joins}).arrivals;
  while (after - before > 1) {
    const std::uint64_t lost = (before + after) / 2;
    (lose_the_teacher(lost - kHeldBefore, lost, joins).joined > 0 ? after : before) = lost;
  }
  return after;
}

// It is in the View already, and what it lacks until that begins is lost with its teacher, of which
// the next head knows nothing. Not every newcomer lacks something then.
TEST(SimulatedNextHead, DoesNotWaitForAMemberThatWillNeverHaveWhatItLacks) {
  std::size_t sent_away = 0;
  for (const TimePoint joins : {95ms, 105ms, 110ms, 115ms}) {
    const std::uint64_t in = let_in(joins);
    for (std::uint64_t held = in - 36; held < in; held += 6 * stride(3)) {
      for (std::uint64_t lost = in; lost < in + 30; lost += 10) {
        const TrainingEnd end = lose_the_teacher(held, lost, joins);
        ASSERT_EQ(fault_of(stage(), end), "") << held << " and " << lost;
        const bool lacks =
            end.member_error && end.member_error->message.find("lacks steps") != std::string::npos;
        sent_away += lacks ? 1 : 0;
      }
    }
  }
  EXPECT_GT(sent_away, 10 / stride(3));
}

}  // namespace
}  // namespace troupe::sim
