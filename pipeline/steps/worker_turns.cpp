#include "pipeline/steps/worker_turns.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/base/error.h"

namespace troupe::pipeline {

WorkerTurns::WorkerTurns(const model::Gan& gan, const TrainingOptions& options, WorkerSteps& steps)
    : gan_(gan), options_(options), steps_(steps) {}

const WorkerTurns::Ready* WorkerTurns::find(std::uint64_t iteration, std::uint32_t worker) const {
  const auto found = std::ranges::find_if(ready_, [&](const Ready& ready) {
    return ready.iteration == iteration && ready.worker == worker;
  });
  return found == ready_.end() ? nullptr : &*found;
}

bool WorkerTurns::is_done(const TrainingState& state, std::uint64_t iteration,
                          std::uint32_t worker) const {
  return state.turns->workers.at(worker).turns > iteration || find(iteration, worker) != nullptr;
}

std::vector<MicroBatch> WorkerTurns::parts_of(const IterationShare& share,
                                              std::uint32_t worker) const {
  std::vector<MicroBatch> parts;
  for (std::size_t i = 0; i < share.size(); ++i) {
    if (worker_of(share.micro_batch(i)) == worker) parts.push_back(share.micro_batch(i));
  }
  return parts;
}

bool WorkerTurns::is_shared(const IterationShare& share) const {
  if (options_.parts() == 1) return false;
  std::map<std::uint32_t, std::uint32_t> parts;
  for (std::size_t i = 0; i < share.size(); ++i) ++parts[worker_of(share.micro_batch(i))];
  return std::ranges::any_of(parts,
                             [&](const auto& each) { return each.second < options_.parts(); });
}

bool WorkerTurns::has_parts(const IsOwn& is_own, std::uint64_t iteration,
                            std::uint32_t worker) const {
  for (std::uint32_t part = 0; part < options_.parts(); ++part) {
    if (is_own(iteration, worker * options_.parts() + part)) return true;
  }
  return false;
}

// The one under way, else one that the others wait for, else the first; or the first in any case.
std::optional<std::uint32_t> WorkerTurns::to_compute(const TrainingState& state,
                                                     const IterationShare& share) const {
  const std::uint64_t iteration = share.iteration();
  const bool in_order = is_shared(share);
  std::optional<std::uint32_t> chosen;
  for (std::size_t i = 0; i < share.size(); ++i) {
    const std::uint32_t worker = worker_of(share.micro_batch(i));
    if (is_done(state, iteration, worker)) continue;
    const bool is_open = state.turns->workers.at(worker).turns == iteration;
    if (in_order) return is_open ? std::optional(worker) : std::nullopt;
    if (!is_open) continue;
    if (steps_.is_at(iteration, worker)) return worker;
    const bool is_next = state.turns->next.has(worker);
    if (!chosen || (is_next && !state.turns->next.has(*chosen))) chosen = worker;
  }
  return chosen;
}

bool WorkerTurns::compute(const TrainingState& state, const IterationShare& share) {
  const std::optional<std::uint32_t> worker = to_compute(state, share);
  if (!worker) return false;
  if (!steps_.is_at(share.iteration(), *worker)) last_ = std::exchange(spent_, 0.0);
  std::vector<MicroBatch> parts = parts_of(share, *worker);
  auto contributions = steps_.compute(state, share.iteration(), parts);
  if (contributions == nullptr) return true;
  for (MicroBatch& part : parts) part.events.images = part.events.conditions = {};
  ready_.push_back({share.iteration(), *worker, std::move(parts), std::move(contributions)});
  return true;
}

bool WorkerTurns::has_all_of(const TrainingState& state, const IterationShare& share) const {
  for (std::size_t i = 0; i < share.size(); ++i) {
    if (!is_done(state, share.iteration(), worker_of(share.micro_batch(i)))) return false;
  }
  return true;
}

std::optional<StepShare> WorkerTurns::share_of_turn(const TrainingState& state,
                                                    const IsOwn& is_own) const {
  std::vector<const Ready*> own;
  std::vector<MicroBatch> events;
  for (const std::uint32_t worker : state.turns->next.numbers()) {
    if (!has_parts(is_own, state.iteration, worker)) continue;
    const Ready* const ready = find(state.iteration, worker);
    if (ready == nullptr) return std::nullopt;
    own.push_back(ready);
    events.insert(events.end(), ready->parts.begin(), ready->parts.end());
  }
  StepShare share(gan_, options_,
                  std::make_shared<IterationShare>(state.iteration, std::move(events)), state.slot);
  for (const Ready* const ready : own) {
    const bool has_first = ready->parts.front().index % options_.parts() == 0;
    if (has_first) share.add_memory(ready->contributions, 1);
    for (std::size_t i = 0; i < ready->parts.size(); ++i) share.note_computed();
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
    if (turns != iteration || !is_own(iteration, worker * options_.parts())) continue;
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
    return state.turns->workers.at(ready.worker).turns > ready.iteration;
  });
}

void WorkerTurns::begin_anew() {
  steps_.forget();
  ready_.clear();
  spent_ = last_;
}

}  // namespace troupe::pipeline
