#include "model/learning_rate.h"

#include <algorithm>

namespace troupe::model {

double learning_rate(const LearningRateOptions& options, const LearningRateState& state,
                     std::uint64_t iteration) {
  switch (options.kind) {
    case LearningRateKind::kConstant:
      break;
    case LearningRateKind::kWarmup:
      if (iteration + 1 >= options.warmup_iterations) break;
      return options.rate * static_cast<double>(iteration + 1) /
             static_cast<double>(options.warmup_iterations);
    case LearningRateKind::kExponential:
      return options.rate * state.scale;
    case LearningRateKind::kPlateau:
      // A floor above the rate itself never raises it.
      return std::max(options.rate * state.scale, std::min(options.min_rate, options.rate));
  }
  return options.rate;
}

LearningRateState after_iteration(const LearningRateOptions& options, LearningRateState state,
                                  std::uint64_t iteration) {
  if (options.kind == LearningRateKind::kExponential && options.decay_iterations > 0 &&
      (iteration + 1) % options.decay_iterations == 0) {
    state.scale *= options.decay;
  }
  return state;
}

LearningRateState after_epoch(const LearningRateOptions& options, LearningRateState state,
                              double metric) {
  if (options.kind != LearningRateKind::kPlateau) return state;
  // As in Keras an epoch that ends the cooldown counts already.
  if (state.cooling > 0) {
    --state.cooling;
    state.waited = 0;
  }
  if (state.epochs == 0 || metric < state.best - options.min_delta) {
    state.best = metric;
    state.waited = 0;
  } else if (state.cooling == 0) {
    ++state.waited;
    if (state.waited >= options.patience && options.rate * state.scale > options.min_rate) {
      state.scale *= options.factor;
      state.cooling = options.cooldown;
      state.waited = 0;
    }
  }
  ++state.epochs;
  return state;
}

}  // namespace troupe::model
