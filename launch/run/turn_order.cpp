#include "launch/run/turn_order.h"

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
                                        "same train.strategy",
                                        path, what)};
}

// By step.
Result<std::map<std::uint64_t, std::uint32_t>> turns_in(const std::string& path,
                                                        runtime::Disk& disk) {
  ASSIGN_OR_RETURN(const runtime::Buffer content, disk.read(path));
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  std::map<std::uint64_t, std::uint32_t> turns;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string_view::npos;
       begin = end + 1) {
    const auto record = telemetry::read_record(text.substr(begin, end - begin));
    if (!record.ok()) return refusal(path, record.error().message);
    const auto* step = std::get_if<telemetry::StepFacts>(&record->body);
    if (step == nullptr) continue;
    if (!step->worker) return refusal(path, "its steps are no turns of workers");
    turns[record->step] = *step->worker;
  }
  if (turns.empty()) return refusal(path, "it has no steps");
  return turns;
}

}  // namespace

Result<TurnOrder> read_turn_order(const std::string& path, const pipeline::TrainingOptions& options,
                                  runtime::Disk& disk) {
  if (!options.has_turns()) {
    return Error{ErrorKind::kUsage,
                 fmt::format("--order is for strategies in which workers take turns (downpour, "
                             "easgd, gem), and train.strategy is {}: its bits have no order",
                             pipeline::strategy_name(options.strategy.kind))};
  }
  ASSIGN_OR_RETURN(const auto turns, turns_in(path, disk));
  auto order = std::make_shared<std::vector<std::uint32_t>>();
  const std::size_t workers = options.strategy.workers;
  std::set<std::uint32_t> had;  // of the iteration
  for (const auto& [step, worker] : turns) {
    if (step != order->size())
      return refusal(path, fmt::format("step {} is missing", order->size()));
    if (step % workers == 0) had.clear();
    const bool is_first = had.empty();
    if (worker >= workers || !had.insert(worker).second || (is_first && worker != 0)) {
      return refusal(path, fmt::format("step {} is worker {}'s, which is not one of {} that have "
                                       "one turn each in an iteration, worker 0 first",
                                       step, worker, workers));
    }
    order->push_back(worker);
  }
  return TurnOrder(std::move(order));
}

Result<void> check_turn_order(const TurnOrder& order, const pipeline::TrainingState& state) {
  const std::uint64_t step = state.step(state.scales.size());
  if (step > order->size()) return {};
  runtime::Hash128 hash;
  for (std::uint64_t turn = 0; turn < step; ++turn) {
    hash = pipeline::with_turn(hash, (*order)[turn]);
  }
  const bool next_differs = step < order->size() && (*order)[step] != state.turns->next;
  if (hash == state.turns->order && !next_differs) return {};
  return Error{
      ErrorKind::kData,
      fmt::format("the state that the run goes on from, at step {}, was trained in another "
                  "order than that of --order: go on without it, or give it the "
                  "metrics.jsonl of the run that the state is of",
                  step)};
}

}  // namespace troupe::launch
