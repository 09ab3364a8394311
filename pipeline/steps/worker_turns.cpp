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

// The one under way, else the one that the others wait for, else the first.
const MicroBatch* WorkerTurns::to_compute(const TrainingState& state,
                                          const IterationShare& share) const {
  const MicroBatch* chosen = nullptr;
  for (std::size_t i = 0; i < share.size(); ++i) {
    const MicroBatch& events = share.micro_batch(i);
    if (!is_open(state, share.iteration(), events.index)) continue;
    if (steps_.is_at(share.iteration(), events.index)) return &events;
    if (chosen == nullptr || events.index == state.turns->next) chosen = &events;
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

std::optional<StepShare> WorkerTurns::share_of_turn(const TrainingState& state, bool own) const {
  std::vector<MicroBatch> events;
  const Ready* const ready = own ? find(state.iteration, state.turns->next) : nullptr;
  if (own && ready == nullptr) return std::nullopt;
  if (own) events.push_back(ready->events);
  StepShare share(gan_, options_,
                  std::make_shared<IterationShare>(state.iteration, std::move(events)), state.slot);
  if (!own) return share;
  share.add_memory(ready->contributions, 1);
  share.note_computed();
  return share;
}

std::optional<TurnOffer> WorkerTurns::offer(
    const TrainingState& state,
    const std::function<bool(std::uint64_t, std::uint32_t)>& is_own) const {
  if (state.slot + 1 == options_.schedule.size()) return std::nullopt;
  const std::uint64_t iteration = state.iteration;
  const double progress = steps_.progress();
  const double left = progress > 0.0 ? spent_ * (1.0 - progress) / progress : 0.0;
  const double whole = std::max(last_, spent_);
  std::optional<TurnOffer> best;
  for (std::uint32_t worker = 0; worker < state.turns->workers.size(); ++worker) {
    const bool is_over =
        worker == state.turns->next || state.turns->workers[worker].turns > iteration;
    if (is_over || !is_own(iteration, worker)) continue;
    const bool is_ready = find(iteration, worker) != nullptr;
    const bool is_begun = progress > 0.0 && steps_.is_at(iteration, worker);
    const double seconds = is_ready ? 0.0 : is_begun ? left : left + whole;
    const TurnOffer offer{static_cast<std::uint32_t>(std::min(seconds * 1e3, 1e9)), worker};
    best = best ? std::min(*best, offer) : offer;
  }
  return best;
}

void WorkerTurns::forget(const TrainingState& state) {
  std::erase_if(ready_, [&](const Ready& ready) {
    return state.turns->workers.at(ready.events.index).turns > ready.iteration;
  });
}

}  // namespace troupe::pipeline
