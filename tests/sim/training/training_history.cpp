#include "tests/sim/training/training_history.h"

#include <set>
#include <utility>

#include <fmt/format.h>

namespace troupe::sim {
namespace {

using namespace std::chrono_literals;

constexpr const char* kOnlyWithTwo =
    "train: {micro_batch: 2, micro_batches: 4, epochs: 5}\n"
    "actors: {validator: {every: none}, checkpointer: {every: 1 epoch}}\n"
    "cluster: {failure: {check_every: 8, min_members: 2}}\n";

// 18 events are two iterations and one micro-batch of a third.
constexpr const char* kPartial =
    "train: {micro_batch: 2, micro_batches: 4, epochs: 5, remainder: partial}\n"
    "actors: {validator: {every: none}, checkpointer: {every: 1 epoch}}\n"
    "cluster: {failure: {check_every: 4}}\n";

// Four logical workers, on as many events an outer step as the others have in an iteration.
constexpr const char* kLocal =
    "train: {micro_batch: 1, micro_batches: 4, epochs: 20, "
    "strategy: {kind: local, workers: 4, steps: 2}}\n"
    "actors: {validator: {every: none}, checkpointer: {every: 1 epoch}}\n"
    "cluster: {failure: {check_every: 8}}\n";

constexpr const char* kLocalInInt8 =
    "train: {micro_batch: 1, micro_batches: 4, epochs: 20, "
    "strategy: {kind: local, workers: 4, steps: 2, precision: int8}}\n"
    "actors: {validator: {every: none}, checkpointer: {every: 1 epoch}}\n"
    "cluster: {failure: {check_every: 8}}\n";

constexpr const char* kTurns =
    "train: {micro_batch: 1, micro_batches: 4, epochs: 10, "
    "strategy: {kind: gem, workers: 4, steps: 2}}\n"
    "actors: {validator: {every: none}, checkpointer: {every: 1 epoch}}\n"
    "cluster: {failure: {check_every: 8}}\n";

// A step takes three of the workers, and the next one the fourth.
constexpr const char* kQuorum =
    "train: {micro_batch: 1, micro_batches: 4, epochs: 10, "
    "strategy: {kind: quorum, workers: 4, of: 3, steps: 2}}\n"
    "actors: {validator: {every: none}, checkpointer: {every: 1 epoch}}\n"
    "cluster: {failure: {check_every: 8}}\n";

// Many processes come, one after the other, and there are few places.
constexpr const char* kFewPlaces =
    "train: {micro_batch: 2, micro_batches: 4, epochs: 32}\n"
    "actors: {validator: {every: none}, checkpointer: {every: 1 epoch}}\n"
    "cluster: {joiners: 2, failure: {check_every: 8, restart: 0}}\n";

struct Script {
  bool needs_two = false;
  bool partial = false;
  bool local = false;
  bool rounded = false;  // what the workers change
  bool turns = false;
  bool quorum = false;  // of them
  RingOrder order = RingOrder::kAscending;
  std::uint32_t members = 1;
  Fate fate = Fate::kNothing;
  std::vector<Death> deaths;
  std::vector<TimePoint> joins;
  std::set<std::uint32_t> remote;  // members without data
  Guests guests;
};

TrainingStage& stage(const Script& script) {
  static TrainingStage of_workers(kLocal), of_workers_descending(kLocal, RingOrder::kDescending);
  static TrainingStage rounding(kLocalInInt8),
      rounding_descending(kLocalInInt8, RingOrder::kDescending);
  const bool descending = script.order == RingOrder::kDescending;
  static TrainingStage few_places(kFewPlaces),
      few_places_descending(kFewPlaces, RingOrder::kDescending);
  if (script.guests.most > 0) return descending ? few_places_descending : few_places;
  static TrainingStage in_turns(kTurns), in_turns_descending(kTurns, RingOrder::kDescending);
  static TrainingStage in_quorum(kQuorum), in_quorum_descending(kQuorum, RingOrder::kDescending);
  if (script.quorum) return descending ? in_quorum_descending : in_quorum;
  if (script.turns) return descending ? in_turns_descending : in_turns;
  if (script.local && script.rounded) return descending ? rounding_descending : rounding;
  if (script.local) return descending ? of_workers_descending : of_workers;
  static TrainingStage ends_short(kPartial),
      ends_short_descending(kPartial, RingOrder::kDescending);
  if (script.partial) return descending ? ends_short_descending : ends_short;
  static TrainingStage one, two(kOnlyWithTwo);
  static TrainingStage one_descending(kShortTraining, RingOrder::kDescending);
  static TrainingStage two_descending(kOnlyWithTwo, RingOrder::kDescending);
  if (descending) return script.needs_two ? two_descending : one_descending;
  return script.needs_two ? two : one;
}

Script script_of(std::uint64_t seed) {
  Dice dice(seed);
  Script script;
  script.needs_two = dice.below(4) == 0;
  script.members = static_cast<std::uint32_t>((script.needs_two ? 2 : 1) + dice.below(3));
  constexpr Fate kFates[] = {Fate::kNothing, Fate::kShortTroubles, Fate::kLongTroubles,
                             Fate::kSpeedsChange};
  script.fate = kFates[dice.below(4)];
  for (std::uint64_t joins = dice.below(4); joins > 0; --joins) {
    script.joins.push_back(dice.between(0s, 900ms));
  }
  // Or the run would wait for members for ever.
  if (script.needs_two) script.joins.insert(script.joins.end(), {20s, 21s, 22s, 23s});
  for (ProcessId victim = 1; victim <= script.members + script.joins.size(); ++victim) {
    const bool comes_late = victim > script.members + 3;
    if (comes_late || dice.below(3) != 0) continue;
    script.deaths.push_back({100 + dice.below(1600), victim, dice.below(2) == 0});
  }
  for (std::uint64_t heads = dice.below(3); heads > 0; --heads) {
    script.deaths.push_back(
        {100 + dice.below(1800), 0, false, 0, 0, Duration{0}, dice.between(1ms, 2500ms)});
  }
  for (std::uint32_t member = 0; member < script.members + script.joins.size(); ++member) {
    if (dice.below(4) == 0) script.remote.insert(member);
  }
  if (dice.below(4) == 0) {
    Death& death = script.deaths.emplace_back();
    death.after = 100 + dice.below(1800);
    death.stands_still = dice.between(1ms, 6s);
  }
  if (dice.below(2) == 0) {
    script.order = RingOrder::kDescending;
    script.members += 2;  // more of them are a ring of rings
  }
  script.partial = !script.needs_two && dice.below(3) == 0;
  script.local = dice.below(4) == 0;
  script.rounded = dice.below(2) == 0;
  script.turns = !script.needs_two && !script.local && dice.below(3) == 0;
  script.quorum = script.turns && dice.below(2) == 0;
  // Told to end, and perhaps lost while they hand over their work.
  for (ProcessId member = 2; member <= script.members; ++member) {
    if (dice.below(3) != 0) continue;
    Death& leave = script.deaths.emplace_back();
    leave.after = 100 + dice.below(1600);
    leave.process = member;
    leave.leaves = true;
    if (dice.below(4) == 0) {
      script.deaths.push_back({leave.after + 1 + dice.below(60), member, dice.below(2) == 0});
    }
  }
  if (!script.local && !script.turns && dice.below(3) == 0) {
    script.guests = {30, dice.next()};
    script.needs_two = script.partial = false;
    script.joins.clear();
    std::erase_if(script.deaths, [&](const Death& each) { return each.process > script.members; });
  }
  return script;
}

}  // namespace

TrainingHistoryEnd play_training_history(std::uint64_t seed, const World::Trace& trace) {
  const Script script = script_of(seed);
  TrainingStage& the_stage = stage(script);
  const std::string expected = the_stage.undisturbed().text();
  SimDisk disk;
  TrainingHistoryEnd result;
  result.local = script.local;
  result.rounded = script.local && script.rounded;
  result.turns = script.turns;
  result.quorum = script.quorum;
  result.end =
      play_training(the_stage, seed, script.members, the_stage.initial_state(), disk, script.fate,
                    script.deaths, script.joins, script.remote, trace, script.guests);
  const TrainingEnd& end = result.end;
  if (!end.over || end.accusation || !end.head_error) {
    const std::string fault = fault_of(the_stage, end);
    if (!fault.empty()) {
      result.failure = fault;
    } else if (hash_of(the_stage.newest_state(disk)) != expected) {
      result.failure = "another state on disk";
    }
  } else if (end.head_error->kind != runtime::ErrorKind::kLostPeers) {
    result.failure = end.head_error->message;
  } else {
    result.resumed = true;
    const TrainingEnd again =
        play_training(the_stage, seed + 1, 2, the_stage.newest_state(disk), disk, Fate::kNothing);
    if (again.head_error || hash_of(again.state) != expected) {
      result.failure = "another state when it was resumed: " + hash_of(again.state);
    }
  }
  return result;
}

}  // namespace troupe::sim
