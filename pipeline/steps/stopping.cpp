#include "pipeline/steps/stopping.h"

#include <cmath>

#include <fmt/format.h>

#include "pipeline/steps/state_layout.h"

namespace troupe::pipeline {
namespace {

std::string name_of_value(const StoppingOptions& options) {
  if (!options.figure.empty()) return fmt::format("the validator's {}", options.figure);
  return fmt::format("the loss {} of the {}", options.term.empty() ? "of all terms" : options.term,
                     options.whose.empty() ? kNetworkNames.at(options.network) : options.whose);
}

}  // namespace

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

StoppingState after_validation(const StoppingOptions& options, StoppingState state,
                               double distance) {
  if (!std::isfinite(distance)) return state;
  state.loss_sum = distance;
  state.loss_steps = 1;
  return after_epoch(options, state);
}

std::optional<std::string> reason_to_stop(const StoppingOptions& options,
                                          const StoppingState& state) {
  if (state.seen.epochs == 0) return std::nullopt;
  const std::string value = name_of_value(options);
  const bool is_loss = options.figure.empty();
  if (options.target && state.smoothed <= *options.target) {
    return fmt::format("{} is {:.6g}{}, which is not above train.stop.target, {:.6g}", value,
                       state.smoothed, is_loss ? "" : " from its ideal", *options.target);
  }
  if (options.patience > 0 && state.seen.waited >= options.patience) {
    const std::string by =
        options.min_delta > 0.0 ? fmt::format(" by more than {:g}", options.min_delta) : "";
    return fmt::format("{} has not {}{} for {} {}: it is {:.6g}{}, and was {:.6g} at best", value,
                       is_loss ? "fallen" : "come nearer to its ideal", by, state.seen.waited,
                       is_loss ? "epochs" : "validations", state.smoothed,
                       is_loss ? "" : " from it", state.seen.best);
  }
  return std::nullopt;
}

}  // namespace troupe::pipeline
