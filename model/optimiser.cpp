#include "model/optimiser.h"

#include <array>
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
    case OptimiserKind::kLars:
      return momentum ? Names{kVelocity} : Names{};
    case OptimiserKind::kRmsprop:
      return Names{kRmsprop}.first(momentum ? 2 : 1);
    case OptimiserKind::kAdam:
    case OptimiserKind::kLamb:
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
// to the next, so vectors of any width give the same bits. The factors are copies, which no store
// can change, so that the compiler keeps them in registers. Devices have the same loops
// (backend/device/kernels/optimiser.cl).

void sgd(const Range& range, UpdateFactors factors) {
  for (std::size_t i = 0; i < range.size; ++i) {
    range.weights[i] -= factors.rate * range.gradients[i];
  }
}

void sgd_with_momentum(const Range& range, UpdateFactors factors) {
  for (std::size_t i = 0; i < range.size; ++i) {
    const float velocity = factors.momentum * range.first[i] + factors.rate * range.gradients[i];
    range.first[i] = velocity;
    range.weights[i] -= velocity;
  }
}

void rmsprop(const Range& range, UpdateFactors factors) {
  for (std::size_t i = 0; i < range.size; ++i) {
    const float g = range.gradients[i];
    const float square = factors.rho * range.first[i] + factors.rest_of_rho * (g * g);
    range.first[i] = square;
    range.weights[i] -= factors.rate * g / (std::sqrt(square) + factors.epsilon);
  }
}

void rmsprop_with_momentum(const Range& range, UpdateFactors factors) {
  for (std::size_t i = 0; i < range.size; ++i) {
    const float g = range.gradients[i];
    const float square = factors.rho * range.first[i] + factors.rest_of_rho * (g * g);
    const float velocity = factors.momentum * range.second[i] +
                           factors.rate * g / (std::sqrt(square) + factors.epsilon);
    range.first[i] = square;
    range.second[i] = velocity;
    range.weights[i] -= velocity;
  }
}

void adam(const Range& range, UpdateFactors factors) {
  for (std::size_t i = 0; i < range.size; ++i) {
    const float g = range.gradients[i];
    const float mean = factors.beta_1 * range.first[i] + factors.rest_of_beta_1 * g;
    const float square = factors.beta_2 * range.second[i] + factors.rest_of_beta_2 * (g * g);
    range.first[i] = mean;
    range.second[i] = square;
    range.weights[i] -= factors.rate * mean / (std::sqrt(square) + factors.epsilon);
  }
}

void adadelta(const Range& range, UpdateFactors factors) {
  for (std::size_t i = 0; i < range.size; ++i) {
    const float g = range.gradients[i];
    const float square = factors.rho * range.first[i] + factors.rest_of_rho * (g * g);
    const float step =
        g * std::sqrt(range.second[i] + factors.epsilon) / std::sqrt(square + factors.epsilon);
    range.first[i] = square;
    range.second[i] = factors.rho * range.second[i] + factors.rest_of_rho * (step * step);
    range.weights[i] -= factors.rate * step;
  }
}

// The root of the sum of value(i)^2, in four chains, so that none waits for the one before.
template <class Value>
double norm(std::size_t size, const Value& value) {
  std::array<double, 4> sums{};
  for (std::size_t i = 0; i < size; ++i) {
    const auto each = static_cast<double>(value(i));
    sums[i % sums.size()] += each * each;
  }
  return std::sqrt((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

double norm_of_weights(const Range& range) {
  return norm(range.size, [&](std::size_t i) { return range.weights[i]; });
}

void lars(const Range& range, const OptimiserOptions& options, double learning_rate) {
  const double of_weights = norm_of_weights(range);
  const double of_gradients = norm(range.size, [&](std::size_t i) { return range.gradients[i]; });
  const bool known = of_weights > 0.0 && of_gradients > 0.0;
  const double ratio =
      known ? options.trust * of_weights / (of_gradients + options.decay * of_weights) : 1.0;
  const auto rate = static_cast<float>(learning_rate * ratio);
  const auto decay = static_cast<float>(options.decay);
  const auto momentum = static_cast<float>(options.momentum);
  for (std::size_t i = 0; i < range.size; ++i) {
    float change = rate * (range.gradients[i] + decay * range.weights[i]);
    if (range.first != nullptr) {
      change = momentum * range.first[i] + change;
      range.first[i] = change;
    }
    range.weights[i] -= change;
  }
}

void lamb(const Range& range, const OptimiserOptions& options, const OptimiserCounters& counters,
          UpdateFactors factors) {
  const auto of_mean = static_cast<float>(1.0 / (1.0 - counters.beta_1_power));
  const auto of_square = static_cast<float>(1.0 / (1.0 - counters.beta_2_power));
  const auto decay = static_cast<float>(options.decay);
  for (std::size_t i = 0; i < range.size; ++i) {
    const float g = range.gradients[i];
    range.first[i] = factors.beta_1 * range.first[i] + factors.rest_of_beta_1 * g;
    range.second[i] = factors.beta_2 * range.second[i] + factors.rest_of_beta_2 * (g * g);
  }
  const auto direction = [&](std::size_t i) {
    const float mean = range.first[i] * of_mean, square = range.second[i] * of_square;
    return mean / (std::sqrt(square) + factors.epsilon) + decay * range.weights[i];
  };
  const double of_weights = norm_of_weights(range), of_step = norm(range.size, direction);
  const double ratio = of_weights > 0.0 && of_step > 0.0 ? of_weights / of_step : 1.0;
  const auto rate = static_cast<float>(static_cast<double>(factors.rate) * ratio);
  for (std::size_t i = 0; i < range.size; ++i) range.weights[i] -= rate * direction(i);
}

bool has_beta_powers(const OptimiserOptions& options) {
  return options.kind == OptimiserKind::kAdam || options.kind == OptimiserKind::kLamb;
}

}  // namespace

bool takes_norms(const OptimiserOptions& options) {
  return options.kind == OptimiserKind::kLars || options.kind == OptimiserKind::kLamb;
}

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
  if (!has_beta_powers(options)) return;
  counters.beta_1_power *= options.beta_1;
  counters.beta_2_power *= options.beta_2;
}

UpdateFactors update_factors(const OptimiserOptions& options, const OptimiserCounters& counters,
                             double learning_rate) {
  if (options.kind == OptimiserKind::kAdam) {
    learning_rate =
        learning_rate * std::sqrt(1.0 - counters.beta_2_power) / (1.0 - counters.beta_1_power);
  }
  UpdateFactors factors;
  factors.rate = static_cast<float>(learning_rate);
  factors.momentum = static_cast<float>(options.momentum);
  factors.rho = static_cast<float>(options.rho);
  factors.rest_of_rho = static_cast<float>(1.0 - options.rho);
  factors.beta_1 = static_cast<float>(options.beta_1);
  factors.rest_of_beta_1 = static_cast<float>(1.0 - options.beta_1);
  factors.beta_2 = static_cast<float>(options.beta_2);
  factors.rest_of_beta_2 = static_cast<float>(1.0 - options.beta_2);
  factors.epsilon = static_cast<float>(options.epsilon);
  return factors;
}

void update(const OptimiserOptions& options, const OptimiserCounters& counters,
            double learning_rate, std::span<const float> gradients, std::span<float> weights,
            float* arrays, std::int64_t stride) {
  CHECK(gradients.size() == weights.size() && counters.updates > 0);
  const int kept = optimiser_arrays(options);
  const Range range{weights.size(), gradients.data(), weights.data(), kept > 0 ? arrays : nullptr,
                    kept > 1 ? arrays + stride : nullptr};
  const UpdateFactors factors = update_factors(options, counters, learning_rate);
  const bool momentum = options.momentum > 0.0;
  switch (options.kind) {
    case OptimiserKind::kSgd:
      return momentum ? sgd_with_momentum(range, factors) : sgd(range, factors);
    case OptimiserKind::kRmsprop:
      return momentum ? rmsprop_with_momentum(range, factors) : rmsprop(range, factors);
    case OptimiserKind::kAdam:
      return adam(range, factors);
    case OptimiserKind::kAdadelta:
      return adadelta(range, factors);
    case OptimiserKind::kLars:
      return lars(range, options, learning_rate);
    case OptimiserKind::kLamb:
      return lamb(range, options, counters, factors);
  }
}

}  // namespace troupe::model
