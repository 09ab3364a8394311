#include "pipeline/steps/worker_turns.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"

namespace troupe::pipeline {

WorkerTurns::WorkerTurns(const model::Gan& gan, const TrainingOptions& options, WorkerSteps& steps)
    : gan_(gan), options_(options), steps_(steps) {}

const WorkerTurns::Ready* WorkerTurns::find(std::uint64_t iteration, std::uint32_t worker) const {
  const auto found = std::ranges::find_if(ready_, [&](const Ready& ready) {
    return ready.iteration == iteration && ready.events.index == worker;
  });
  return found == ready_.end() ? nullptr : &*found;
}

bool WorkerTurns::is_open(const TrainingState& state, std::uint64_t iteration,
                          std::uint32_t worker) const {
  return state.turns->workers.at(worker).turns == iteration && find(iteration, worker) == nullptr;
}

// The one under way, else one that the others wait for, else the first.
const MicroBatch* WorkerTurns::to_compute(const TrainingState& state,
                                          const IterationShare& share) const {
  const MicroBatch* chosen = nullptr;
  for (std::size_t i = 0; i < share.size(); ++i) {
    const MicroBatch& events = share.micro_batch(i);
    if (!is_open(state, share.iteration(), events.index)) continue;
    if (steps_.is_at(share.iteration(), events.index)) return &events;
    const bool is_next = state.turns->next.has(events.index);
    if (chosen == nullptr || (is_next && !state.turns->next.has(chosen->index))) chosen = &events;
  }
  return chosen;
}

bool WorkerTurns::compute(const TrainingState& state, const IterationShare& share) {
  const MicroBatch* const events = to_compute(state, share);
  if (events == nullptr) return false;
  if (!steps_.is_at(share.iteration(), events->index)) last_ = std::exchange(spent_, 0.0);
  auto contributions = steps_.compute(state, share.iteration(), *events);
  if (contributions == nullptr) return true;
  Ready ready{share.iteration(), *events, std::move(contributions)};
  ready.events.events.images = {};
  ready.events.events.conditions = {};
  ready_.push_back(std::move(ready));
  return true;
}

bool WorkerTurns::has_all_of(const TrainingState& state, const IterationShare& share) const {
  for (std::size_t i = 0; i < share.size(); ++i) {
    const std::uint32_t worker = share.micro_batch(i).index;
    const bool had = state.turns->workers.at(worker).turns > share.iteration();
    if (!had && find(share.iteration(), worker) == nullptr) return false;
  }
  return true;
}

std::optional<StepShare> WorkerTurns::share_of_turn(const TrainingState& state,
                                                    const IsOwn& is_own) const {
  std::vector<const Ready*> own;
  std::vector<MicroBatch> events;
  for (const std::uint32_t worker : state.turns->next.numbers()) {
    if (!is_own(state.iteration, worker)) continue;
    const Ready* const ready = find(state.iteration, worker);
    if (ready == nullptr) return std::nullopt;
    own.push_back(ready);
    events.push_back(ready->events);
  }
  StepShare share(gan_, options_,
                  std::make_shared<IterationShare>(state.iteration, std::move(events)), state.slot);
  for (const Ready* const ready : own) {
    share.add_memory(ready->contributions, 1);
    share.note_computed();
  }
  return share;
}

// Those that are not begun are computed one behind the other.
std::vector<TurnOffer> WorkerTurns::offers(const TrainingState& state, const IsOwn& is_own) const {
  const bool last = state.slot + 1 == options_.schedule.size();
  const std::uint64_t iteration = state.iteration + last;
  const double progress = steps_.progress();
  const double left = progress > 0.0 ? spent_ * (1.0 - progress) / progress : 0.0;
  const double whole = std::max(last_, spent_);
  double until = left;
  std::vector<TurnOffer> all;
  for (std::uint32_t worker = 0; worker < state.turns->workers.size(); ++worker) {
    const std::uint64_t turns = state.turns->workers[worker].turns + state.turns->next.has(worker);
    if (turns != iteration || !is_own(iteration, worker)) continue;
    const bool is_ready = find(iteration, worker) != nullptr;
    const bool is_begun = progress > 0.0 && steps_.is_at(iteration, worker);
    const double seconds = is_ready ? 0.0 : is_begun ? left : until += whole;
    all.push_back({static_cast<std::uint32_t>(std::min(seconds * 1e3, 1e9)), worker});
  }
  std::ranges::sort(all);
  const std::size_t most = options_.strategy.at_a_time(last ? 0 : state.slot + 1);
  if (all.size() > most) all.resize(most);
  return all;
}

void WorkerTurns::forget(const TrainingState& state) {
  std::erase_if(ready_, [&](const Ready& ready) {
    return state.turns->workers.at(ready.events.index).turns > ready.iteration;
  });
}

}  // namespace troupe::pipeline
