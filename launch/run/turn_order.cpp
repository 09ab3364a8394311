#include "launch/run/turn_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "pipeline/steps/turn_update.h"
#include "telemetry/record.h"

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

Error refusal(const std::string& path, const std::string& what) {
  return {ErrorKind::kData, fmt::format("{}: {}; --order takes the metrics.jsonl of a run with the "
                                        "same train.strategy, with as many sites or workers",
                                        path, what)};
}

struct LoggedStep {
  telemetry::TurnFacts turn;
  std::string state;  // its hash
};

// By step, and the states that were saved.
struct LoggedRun {
  std::map<std::uint64_t, LoggedStep> steps;
  std::map<std::uint64_t, std::string> saved;
};

Result<LoggedRun> run_in(const std::string& path, runtime::Disk& disk) {
  ASSIGN_OR_RETURN(const runtime::Buffer content, disk.read(path));
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  LoggedRun run;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string_view::npos;
       begin = end + 1) {
    const auto record = telemetry::read_record(text.substr(begin, end - begin));
    if (!record.ok()) return refusal(path, record.error().message);
    if (const auto* saved = std::get_if<telemetry::CheckpointFacts>(&record->body)) {
      run.saved[record->step] = saved->state_hash;
    }
    const auto* step = std::get_if<telemetry::StepFacts>(&record->body);
    if (step == nullptr) continue;
    if (!step->turn) return refusal(path, "its steps do not say whose turns they were");
    if (step->state_hash.empty()) return refusal(path, "its steps do not have a state_hash");
    run.steps[record->step] = {*step->turn, step->state_hash};
  }
  if (run.steps.empty()) return refusal(path, "it has no steps");
  return run;
}

// Whether these workers can have the turn behind those of `order`.
bool may_follow(const std::vector<std::uint32_t>& order, const std::vector<std::uint32_t>& turn,
                std::uint64_t step, const pipeline::StrategyOptions& strategy) {
  const auto size = strategy.at_a_time(static_cast<std::uint32_t>(step % strategy.turns()));
  const auto iteration = static_cast<std::ptrdiff_t>(order.size() % strategy.workers);
  std::set<std::uint32_t> had(order.end() - iteration, order.end());
  const bool is_first = step == 0;
  return turn.size() == size && std::ranges::all_of(turn, [&](std::uint32_t worker) {
           return worker < (is_first ? size : strategy.workers) && had.insert(worker).second;
         });
}

// Those of all workers together.
std::uint64_t turns_so_far(const pipeline::TrainingState& state) {
  std::uint64_t turns = 0;
  for (const pipeline::WorkerState& worker : state.turns->workers) turns += worker.turns;
  return turns;
}

}  // namespace

Result<TurnLog> read_turn_log(const std::string& path, const pipeline::TrainingOptions& options,
                              runtime::Disk& disk) {
  const pipeline::StrategyOptions& strategy = options.strategy;
  if (!options.has_turns()) {
    return Error{ErrorKind::kUsage,
                 fmt::format("--order is for strategies in which workers take turns (downpour, "
                             "easgd, gem, quorum), and train.strategy is {}: its bits have no "
                             "order",
                             pipeline::strategy_name(strategy.kind))};
  }
  ASSIGN_OR_RETURN(const LoggedRun run, run_in(path, disk));
  TurnLog log;
  auto order = std::make_shared<std::vector<std::uint32_t>>();
  std::uint64_t next = 0;
  const auto add = [&](std::vector<std::uint32_t> turn) -> Result<void> {
    std::ranges::sort(turn);
    if (may_follow(*order, turn, next, strategy)) {
      order->insert(order->end(), turn.begin(), turn.end());
      ++next;
      return {};
    }
    return refusal(
        path, fmt::format("step {} is of workers [{}], and an iteration is one turn of "
                          "each of {}, {} at a time, the first of them first",
                          next, fmt::join(turn, ", "), strategy.workers, strategy.at_a_time()));
  };
  for (const auto& [number, step] : run.steps) {
    if (number != next) return refusal(path, fmt::format("step {} is missing", next));
    RETURN_IF_ERROR(add(step.turn.workers));
    log.states.push_back(step.state);
  }
  RETURN_IF_ERROR(add(run.steps.rbegin()->second.turn.next));
  if (const auto last = run.saved.find(next - 1); last != run.saved.end()) {
    log.states.push_back(last->second);
  }
  log.order = std::move(order);
  return log;
}

Result<void> check_turn_order(const TurnOrder& order, const pipeline::TrainingState& state) {
  const pipeline::TurnState& turns = *state.turns;
  const std::uint64_t behind = turns_so_far(state);
  if (behind > order->size()) return {};
  runtime::Hash128 hash;
  for (std::uint64_t i = 0; i < behind; ++i) hash = pipeline::with_turn(hash, (*order)[i]);
  const std::vector<std::uint32_t> next = turns.next.numbers();
  const bool says_next = behind + next.size() <= order->size();
  const bool leads_here =
      hash == turns.order &&
      (!says_next ||
       std::equal(next.begin(), next.end(), order->begin() + static_cast<std::ptrdiff_t>(behind)));
  if (leads_here) return {};
  return Error{
      ErrorKind::kData,
      fmt::format("the state that the run goes on from, at step {}, was trained in another "
                  "order than that of --order: go on without it, or give it the "
                  "metrics.jsonl of the run that the state is of",
                  state.step(state.scales.size()))};
}

Result<TurnLog> take_turn_log(const std::string& path, const pipeline::TrainingOptions& options,
                              const pipeline::TrainingState& state, runtime::Disk& disk,
                              const runtime::Log& log) {
  ASSIGN_OR_RETURN(TurnLog turns, read_turn_log(path, options, disk));
  RETURN_IF_ERROR(check_turn_order(turns.order, state));
  const std::size_t size = turns.order->size();
  if (const std::uint64_t behind = turns_so_far(state); behind > size) {
    log.warning(
        fmt::format("--order: {} has {} turns, and {} were taken already, so that it could "
                    "not be compared and changes nothing",
                    path, size, behind));
  } else {
    log.info(
        fmt::format("--order: workers take the first {} turns as {} has them, and those "
                    "behind as they are ready",
                    size, path));
  }
  return turns;
}

}  // namespace troupe::launch
