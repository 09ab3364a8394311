#include "actors/early_end.h"

namespace troupe::actors {

bool EarlyEnd::wants_figure(const pipeline::TrainingState& state) const {
  const auto& stop = options_.stop;
  if (!stop || stop->figure.empty() || state.slot != 0 || state.iteration == 0) return false;
  if (pipeline::reason_to_stop(stop, state)) return false;
  return every_.due(state.iteration, state.epoch, state.epoch_events == 0);
}

std::optional<double> EarlyEnd::figure_of(const pipeline::TrainingState& state) const {
  const bool is_known = figure_ && figure_->step == state.step(options_.schedule.size());
  if (!is_known || !wants_figure(state)) return std::nullopt;
  return figure_->distance;
}

// A loss is read when an epoch ends, a figure when an iteration's first step is applied.
bool EarlyEnd::may_follow(const pipeline::TrainingState& state) const {
  if (!options_.stop) return false;
  if (options_.stop->figure.empty()) return pipeline::ends_epoch(options_, state);
  if (state.slot + 1 < options_.schedule.size()) return false;
  return wants_figure(state) || pipeline::reason_to_stop(*options_.stop, *state.stopping);
}

}  // namespace troupe::actors
