#include "tests/sim/training/training_history.h"

#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace troupe::sim {
namespace {

using namespace std::chrono_literals;

constexpr const char* kOnlyWithTwo =
    "train: {micro_batch: 2, micro_batches: 4, epochs: 5}\n"
    "actors: {validator: {every: none}, checkpointer: {every: 1 epoch}}\n"
    "cluster: {failure: {check_every: 8, min_members: 2}}\n";

// A step is several where micro-batches share the statistics of batch norm.
constexpr const char* kFewSteps =
    "train: {micro_batch: 2, micro_batches: 4, epochs: 2}\n"
    "actors: {validator: {every: none}, checkpointer: {every: 1 epoch}}\n"
    "cluster: {failure: {check_every: 8}}\n";

// 18 events are two iterations and one micro-batch of a third.
constexpr const char* kPartial =
    "train: {micro_batch: 2, micro_batches: 4, epochs: 5, remainder: partial}\n"
    "actors: {validator: {every: none}, checkpointer: {every: 1 epoch}}\n"
    "cluster: {failure: {check_every: 4}}\n";

// Four logical workers, on as many events an outer step as the others have in an iteration; or on
// as many in two of them, where they take turns. A step of a quorum takes three of the workers, and
// the next one the fourth. Sites are two workers, of which one or both have a turn at a time.
std::string with_workers(Strategy strategy, bool has_guests) {
  constexpr std::array kFields{"",
                               "",
                               "kind: local, workers: 4",
                               "kind: local, workers: 4, precision: int8",
                               "kind: tree, sites: 2",
                               "kind: downpour, workers: 4",
                               "kind: easgd, workers: 4",
                               "kind: gem, workers: 4",
                               "kind: quorum, workers: 4, of: 3",
                               "kind: gem, sites: 2",
                               "kind: quorum, sites: 2, of: 2"};
  return fmt::format(
      "train: {{micro_batch: 1, micro_batches: 4, epochs: {}, strategy: {{{}, steps: 2}}}}\n"
      "actors: {{validator: {{every: none}}, checkpointer: {{every: 1 epoch}}}}\n"
      "cluster: {{{}failure: {{check_every: 8, restart: {}}}}}\n",
      takes_turns(strategy) ? 10 : 20, kFields[static_cast<std::size_t>(strategy)],
      has_guests ? "joiners: 2, " : "", has_guests ? 0 : 3);
}

constexpr const char* kLong =
    "train: {micro_batch: 2, micro_batches: 4, epochs: 32}\n"
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
  Strategy strategy = Strategy::kSynchronous;
  RingOrder order = RingOrder::kAscending;
  std::uint32_t members = 1;
  Fate fate = Fate::kNothing;
  std::vector<Death> deaths;
  std::vector<TimePoint> joins;
  std::set<std::uint32_t> remote;  // members without data
  Guests guests;
};

std::string topology_of(const Script& script) {
  if (script.strategy == Strategy::kSharedNorm) return kFewSteps;
  const bool has_guests = script.guests.most > 0;
  if (script.strategy != Strategy::kSynchronous) return with_workers(script.strategy, has_guests);
  if (has_guests) return kFewPlaces;
  if (script.fate == Fate::kSlowNewcomers && !script.needs_two) return kLong;
  if (script.partial) return kPartial;
  return script.needs_two ? kOnlyWithTwo : kShortTraining;
}

TrainingStage& stage(const Script& script) {
  static std::map<std::tuple<std::string, RingOrder, std::vector<std::string>>, TrainingStage>
      stages;
  const std::string topology = topology_of(script);
  std::vector<std::string> settings;
  if (script.strategy == Strategy::kSharedNorm) {
    settings = {"model.generator.layers.3={batch_norm: {sync: true}}"};
    // Only some steps have rounds where only one network shares.
    if (script.members % 3 != 0) {
      settings.emplace_back("model.discriminator.layers.2={batch_norm: {sync: true}}");
    }
  }
  return stages.try_emplace({topology, script.order, settings}, topology, script.order, settings)
      .first->second;
}

// One in four trains alone and, of the others that do not wait for two, one in three takes turns.
Strategy strategy_of(Dice& dice, bool needs_two) {
  const bool local = dice.below(4) == 0, rounded = dice.below(2) == 0;
  if (local) return rounded ? Strategy::kLocalInInt8 : Strategy::kLocal;
  if (needs_two || dice.below(3) != 0) return Strategy::kSynchronous;
  return dice.below(2) == 0 ? Strategy::kQuorum : Strategy::kGem;
}

Script script_of(std::uint64_t seed, std::optional<Strategy> strategy) {
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
  script.strategy = strategy_of(dice, script.needs_two);
  const bool is_tree = script.strategy == Strategy::kLocal && script.members % 2 == 0;
  if (is_tree) script.strategy = Strategy::kTree;
  const bool in_sites = script.strategy == Strategy::kGem && script.members % 2 == 0;
  if (in_sites) script.strategy = Strategy::kGemInSites;
  script.strategy = strategy.value_or(script.strategy);
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
  const bool has_workers = script.strategy != Strategy::kSynchronous;
  const bool may_have_guests = script.strategy != Strategy::kSharedNorm;
  if (may_have_guests && dice.below(has_workers ? 4 : 3) == 0) {
    script.guests = {30, dice.next()};
    script.needs_two = script.partial = false;
    script.joins.clear();
    std::erase_if(script.deaths, [&](const Death& each) { return each.process > script.members; });
  }
  const bool may_share = !strategy && script.strategy == Strategy::kSynchronous &&
                         script.guests.most == 0 && !script.needs_two && !script.partial;
  if (may_share && dice.below(3) == 0) script.strategy = Strategy::kSharedNorm;
  // Several at a time, so that the View changes while they learn, in a run that is long enough.
  if (script.fate == Fate::kNothing && script.guests.most == 0 && dice.below(2) == 0) {
    script.fate = Fate::kSlowNewcomers;
    script.partial = false;
    while (script.joins.size() < 6) script.joins.push_back(dice.between(0s, 300ms));
  }
  return script;
}

}  // namespace

TrainingHistoryEnd play_training_history(std::uint64_t seed, const World::Trace& trace,
                                         std::optional<Strategy> strategy) {
  const Script script = script_of(seed, strategy);
  TrainingStage& the_stage = stage(script);
  const std::string expected = the_stage.undisturbed().text();
  SimDisk disk;
  TrainingHistoryEnd result;
  result.strategy = script.strategy;
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
