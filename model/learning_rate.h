#pragma once

// Learning-rate policies as pure functions: the rate of a step and the state after it. Their inputs
// (steps, the epoch's mean loss) come from step records, so every member decides the same.
//
// A policy is a list of parts that follow one another: a warm-up, then a cosine, say. Each goes on
// from the rate that the one before has left; behind the last one the rate stays.

#include <cstdint>
#include <vector>

#include "model/best_so_far.h"

namespace troupe::model {

enum class LearningRateKind : std::uint8_t {
  kConstant,
  kWarmup,       // linearly from rate / length to the rate, over the part's length
  kExponential,  // x decay after every `every`, by repeated multiplication
  kPlateau,      // Keras' ReduceLROnPlateau, see below
  kCosine,       // half a cosine from the rate to `to` x the rate, over the part's length
  kSteps,        // x factor after each span of `at`, from the part's beginning
};

// A part of training: so many iterations or epochs.
struct TrainingSpan {
  std::uint64_t count = 0;
  bool epochs = false;
  bool operator==(const TrainingSpan&) const = default;
};

struct LearningRatePart {
  LearningRateKind kind = LearningRateKind::kConstant;
  TrainingSpan length;  // 0: to the end of training
  double to = 0.0;
  double decay = 0.96;
  TrainingSpan every{1000, false};
  // kPlateau: when the epoch's metric has not fallen by min_delta for `patience` epochs, the rate
  // is multiplied by `factor`, not below min_rate; then `cooldown` epochs pass without counting.
  double factor = 0.1;
  std::vector<TrainingSpan> at;
  std::uint32_t patience = 10;
  double min_delta = 1e-4;
  std::uint32_t cooldown = 0;
  double min_rate = 0.0;
  bool operator==(const LearningRatePart&) const = default;
};

// By how much the rate grows with the events of an iteration.
enum class RateScaling : std::uint8_t {
  kNone,
  kLinear,  // x events / per_events (Goyal et al., arXiv:1706.02677)
  kSqrt,    // x the root of that (Krizhevsky, arXiv:1404.5997)
};

// The whole policy is the part that the options are themselves, or else `parts`.
struct LearningRateOptions : LearningRatePart {
  double rate = 1e-3;
  std::vector<LearningRatePart> parts;
  RateScaling scaled = RateScaling::kNone;
  std::uint64_t per_events = 0;
};

struct LearningRateState {
  double scale = 1.0;  // product of all that was multiplied so far
  BestSoFar seen{};    // by a plateau
  std::uint32_t cooling = 0;
  bool operator==(const LearningRateState&) const = default;
};

// A place in training.
struct TrainingTime {
  std::uint64_t iteration = 0;
  std::uint64_t iterations_per_epoch = 1;
  std::uint64_t events = 0;  // of an iteration; read where rates are scaled
};

// Rate of every step of the iteration.
double learning_rate(const LearningRateOptions& options, const LearningRateState& state,
                     const TrainingTime& time);
// After the last step of the iteration.
LearningRateState after_iteration(const LearningRateOptions& options, LearningRateState state,
                                  const TrainingTime& time);
// After an epoch whose mean total loss of this network was `metric`. `time` is the iteration that
// comes next.
LearningRateState after_epoch(const LearningRateOptions& options, LearningRateState state,
                              const TrainingTime& time, double metric);

}  // namespace troupe::model
