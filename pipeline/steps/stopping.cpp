#include "pipeline/steps/stopping.h"

#include <fmt/format.h>

#include "pipeline/steps/state_layout.h"

namespace troupe::pipeline {

StoppingState after_epoch(const StoppingOptions& options, StoppingState state) {
  if (state.loss_steps == 0) return state;
  const double loss = state.loss_sum / static_cast<double>(state.loss_steps);
  const bool first = state.seen.epochs == 0;
  state.smoothed =
      first ? loss : options.smoothing * state.smoothed + (1.0 - options.smoothing) * loss;
  state.seen.note(state.smoothed, options.min_delta);
  state.loss_sum = 0.0;
  state.loss_steps = 0;
  return state;
}

std::optional<std::string> reason_to_stop(const StoppingOptions& options,
                                          const StoppingState& state) {
  if (state.seen.epochs == 0) return std::nullopt;
  const std::string loss =
      fmt::format("the loss {} of the {}", options.term.empty() ? "of all terms" : options.term,
                  options.whose.empty() ? kNetworkNames.at(options.network) : options.whose);
  if (options.target && state.smoothed <= *options.target) {
    return fmt::format("{} is {:.6g}, which is not above train.stop.target, {:.6g}", loss,
                       state.smoothed, *options.target);
  }
  if (options.patience > 0 && state.seen.waited >= options.patience) {
    return fmt::format("{} has not fallen for {} epochs: it is {:.6g}, and was {:.6g} at best",
                       loss, state.seen.waited, state.smoothed, state.seen.best);
  }
  return std::nullopt;
}

}  // namespace troupe::pipeline
