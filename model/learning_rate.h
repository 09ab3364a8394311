#pragma once

// Learning-rate policies as pure functions: the rate of a step and the state after it. Their inputs
// (steps, the epoch's mean loss) come from step records, so every member decides the same.

#include <cstdint>

namespace troupe::model {

enum class LearningRateKind : std::uint8_t { kConstant, kWarmup, kExponential, kPlateau };

struct LearningRateOptions {
  LearningRateKind kind = LearningRateKind::kConstant;
  double rate = 1e-3;
  // kWarmup: rate x (iteration + 1) / warmup_iterations until it is reached.
  std::uint64_t warmup_iterations = 0;
  // kExponential: rate x decay ^ floor(iteration / decay_iterations), by repeated multiplication.
  double decay = 0.96;
  std::uint64_t decay_iterations = 1000;
  // kPlateau (Keras ReduceLROnPlateau): when the epoch's metric has not fallen by min_delta for
  // `patience` epochs, the rate is multiplied by `factor`, not below min_rate; then `cooldown`
  // epochs pass without counting.
  double factor = 0.1;
  std::uint32_t patience = 10;
  double min_delta = 1e-4;
  std::uint32_t cooldown = 0;
  double min_rate = 0.0;
};

struct LearningRateState {
  double scale = 1.0;  // product of the decays so far
  double best = 0.0;   // plateau: lowest metric seen; meaningful when epochs > 0
  std::uint32_t epochs = 0;
  std::uint32_t waited = 0;
  std::uint32_t cooling = 0;
  bool operator==(const LearningRateState&) const = default;
};

// Rate of every step of `iteration`.
double learning_rate(const LearningRateOptions& options, const LearningRateState& state,
                     std::uint64_t iteration);
// After the last step of `iteration`.
LearningRateState after_iteration(const LearningRateOptions& options, LearningRateState state,
                                  std::uint64_t iteration);
// After an epoch whose mean total loss of this network was `metric`.
LearningRateState after_epoch(const LearningRateOptions& options, LearningRateState state,
                              double metric);

}  // namespace troupe::model
