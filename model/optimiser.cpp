#include "model/optimiser.h"

#include <cmath>
#include <string_view>

#include "runtime/base/error.h"

namespace troupe::model {
namespace {

using Names = std::span<const std::string_view>;

Names array_names(const OptimiserOptions& options) {
  static constexpr std::string_view kVelocity[] = {"velocity"};
  static constexpr std::string_view kRmsprop[] = {"mean_square", "velocity"};
  static constexpr std::string_view kAdam[] = {"mean", "mean_square"};
  static constexpr std::string_view kAdadelta[] = {"mean_square", "mean_square_update"};
  const bool momentum = options.momentum > 0.0;
  switch (options.kind) {
    case OptimiserKind::kSgd:
      return momentum ? Names{kVelocity} : Names{};
    case OptimiserKind::kRmsprop:
      return Names{kRmsprop}.first(momentum ? 2 : 1);
    case OptimiserKind::kAdam:
      return kAdam;
    case OptimiserKind::kAdadelta:
      return kAdadelta;
  }
  CHECK(false, "unknown optimiser");
}

// One range of the weights and of the arrays, in the order of array_names().
struct Range {
  std::size_t size;
  const float* gradients;
  float* weights;
  float* first;
  float* second;
};

// Each loop reads what it needs of an element before it stores; nothing is carried from one element
// to the next, so vectors of any width give the same bits.

void sgd(const Range& range, float rate) {
  for (std::size_t i = 0; i < range.size; ++i) range.weights[i] -= rate * range.gradients[i];
}

void sgd_with_momentum(const Range& range, float rate, float momentum) {
  for (std::size_t i = 0; i < range.size; ++i) {
    const float velocity = momentum * range.first[i] + rate * range.gradients[i];
    range.first[i] = velocity;
    range.weights[i] -= velocity;
  }
}

void rmsprop(const Range& range, const OptimiserOptions& options, float rate) {
  const auto rho = static_cast<float>(options.rho);
  const auto rest = static_cast<float>(1.0 - options.rho);
  const auto epsilon = static_cast<float>(options.epsilon);
  for (std::size_t i = 0; i < range.size; ++i) {
    const float g = range.gradients[i];
    const float square = rho * range.first[i] + rest * (g * g);
    range.first[i] = square;
    range.weights[i] -= rate * g / (std::sqrt(square) + epsilon);
  }
}

void rmsprop_with_momentum(const Range& range, const OptimiserOptions& options, float rate) {
  const auto rho = static_cast<float>(options.rho);
  const auto rest = static_cast<float>(1.0 - options.rho);
  const auto epsilon = static_cast<float>(options.epsilon);
  const auto momentum = static_cast<float>(options.momentum);
  for (std::size_t i = 0; i < range.size; ++i) {
    const float g = range.gradients[i];
    const float square = rho * range.first[i] + rest * (g * g);
    const float velocity = momentum * range.second[i] + rate * g / (std::sqrt(square) + epsilon);
    range.first[i] = square;
    range.second[i] = velocity;
    range.weights[i] -= velocity;
  }
}

void adam(const Range& range, const OptimiserOptions& options, float rate) {
  const auto beta_1 = static_cast<float>(options.beta_1);
  const auto beta_2 = static_cast<float>(options.beta_2);
  const auto rest_1 = static_cast<float>(1.0 - options.beta_1);
  const auto rest_2 = static_cast<float>(1.0 - options.beta_2);
  const auto epsilon = static_cast<float>(options.epsilon);
  for (std::size_t i = 0; i < range.size; ++i) {
    const float g = range.gradients[i];
    const float mean = beta_1 * range.first[i] + rest_1 * g;
    const float square = beta_2 * range.second[i] + rest_2 * (g * g);
    range.first[i] = mean;
    range.second[i] = square;
    range.weights[i] -= rate * mean / (std::sqrt(square) + epsilon);
  }
}

void adadelta(const Range& range, const OptimiserOptions& options, float rate) {
  const auto rho = static_cast<float>(options.rho);
  const auto rest = static_cast<float>(1.0 - options.rho);
  const auto epsilon = static_cast<float>(options.epsilon);
  for (std::size_t i = 0; i < range.size; ++i) {
    const float g = range.gradients[i];
    const float square = rho * range.first[i] + rest * (g * g);
    const float step = g * std::sqrt(range.second[i] + epsilon) / std::sqrt(square + epsilon);
    range.first[i] = square;
    range.second[i] = rho * range.second[i] + rest * (step * step);
    range.weights[i] -= rate * step;
  }
}

}  // namespace

int optimiser_arrays(const OptimiserOptions& options) {
  return static_cast<int>(array_names(options).size());
}

std::string optimiser_array_name(const OptimiserOptions& options, int array) {
  CHECK(array >= 0 && array < optimiser_arrays(options));
  return std::string(array_names(options)[static_cast<std::size_t>(array)]);
}

// The powers are part of the state and grow by multiplication, so that a resumed run has the same
// bits.
void begin_update(const OptimiserOptions& options, OptimiserCounters& counters) {
  ++counters.updates;
  if (options.kind != OptimiserKind::kAdam) return;
  counters.beta_1_power *= options.beta_1;
  counters.beta_2_power *= options.beta_2;
}

void update(const OptimiserOptions& options, const OptimiserCounters& counters,
            double learning_rate, std::span<const float> gradients, std::span<float> weights,
            float* arrays, std::int64_t stride) {
  CHECK(gradients.size() == weights.size() && counters.updates > 0);
  const Range range{weights.size(), gradients.data(), weights.data(), arrays,
                    optimiser_arrays(options) > 1 ? arrays + stride : nullptr};
  const auto rate = static_cast<float>(learning_rate);
  switch (options.kind) {
    case OptimiserKind::kSgd:
      if (options.momentum > 0.0) {
        return sgd_with_momentum(range, rate, static_cast<float>(options.momentum));
      }
      return sgd(range, rate);
    case OptimiserKind::kRmsprop:
      if (options.momentum > 0.0) return rmsprop_with_momentum(range, options, rate);
      return rmsprop(range, options, rate);
    case OptimiserKind::kAdam:
      // Both bias corrections are the same for every element and so part of the rate.
      return adam(range, options,
                  static_cast<float>(learning_rate * std::sqrt(1.0 - counters.beta_2_power) /
                                     (1.0 - counters.beta_1_power)));
    case OptimiserKind::kAdadelta:
      return adadelta(range, options, rate);
  }
}

}  // namespace troupe::model
