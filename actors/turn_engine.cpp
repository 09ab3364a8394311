#include "actors/turn_engine.h"

#include <algorithm>

namespace troupe::actors {

using runtime::Result;

Result<TurnEngine::Work> TurnEngine::work(const pipeline::TrainingState& state,
                                          const pipeline::View& view, IterationFeed& feed, May may,
                                          const std::function<runtime::TimePoint()>& now) {
  Work work;
  ASSIGN_OR_RETURN(const IterationFeed::Share next, share(state, feed));
  if (shares_.empty()) return work;
  if (may.contribute) {
    work.contribution = turns_.share_of_turn(state, is_own(view));
    if (work.contribution) return work;
  }
  if (next == nullptr || !may.compute) return work;
  const runtime::TimePoint start = now();
  work.computed = turns_.compute(state, *next);
  if (work.computed) turns_.note_time(runtime::seconds(now() - start));
  return work;
}

// The next iteration is begun when all of this one is computed, so that the events of one are held.
// A planned View waits for what a site has begun, which has to be of an iteration that there is.
Result<IterationFeed::Share> TurnEngine::share(const pipeline::TrainingState& state,
                                               IterationFeed& feed) {
  const bool may_end = options_.stop && options_.parts() > 1;
  while (true) {
    for (const IterationFeed::Share& share : shares_) {
      if (!turns_.has_all_of(state, *share)) return share;
      feed.release_events(*share, share->held());
    }
    const std::uint64_t iteration =
        shares_.empty() ? state.iteration : shares_.back()->iteration() + 1;
    if (iteration > state.iteration + (may_end ? 0 : 1)) return IterationFeed::Share();
    ASSIGN_OR_RETURN(IterationFeed::Share share, feed.begin(iteration));
    if (share == nullptr) return share;
    shares_.push_back(std::move(share));
  }
}

pipeline::WorkerTurns::IsOwn TurnEngine::is_own(const pipeline::View& view) const {
  return [&](std::uint64_t iteration, std::uint32_t part) {
    return view.owners_in(iteration).at(part) == replica_;
  };
}

std::vector<pipeline::TurnOffer> TurnEngine::offers(const pipeline::TrainingState& state,
                                                    const pipeline::View& view) const {
  const pipeline::StrategyOptions& strategy = options_.strategy;
  const std::uint64_t next = state.step(options_.schedule.size()) + 1;
  const std::uint64_t first = strategy.turns_before(next);
  const std::uint64_t end = strategy.turns_before(next + 1);
  if (!order_ || end > order_->size()) return turns_.offers(state, is_own(view));
  std::vector<pipeline::TurnOffer> offers;
  for (std::uint64_t i = first; i < end; ++i) {
    offers.push_back({0, order_->at(i)});
  }
  std::ranges::sort(offers);
  return offers;
}

void TurnEngine::go_on(const pipeline::TrainingState& state) {
  turns_.forget(state);
  // The last one tells which is begun next.
  while (shares_.size() > 1 && shares_.front()->iteration() < state.iteration) {
    shares_.pop_front();
  }
}

}  // namespace troupe::actors
