#include "pipeline/steps/weights_mean.h"

#include <algorithm>
#include <span>

#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

void follow_values(double decay, std::span<const float> values, std::span<float> mean) {
  CHECK(values.size() == mean.size(), "the mean of another network");
  for (std::size_t i = 0; i < values.size(); ++i) {
    mean[i] = static_cast<float>(decay * static_cast<double>(mean[i]) +
                                 (1.0 - decay) * static_cast<double>(values[i]));
  }
}

}  // namespace

MeanState mean_of(const NetworkState& network) {
  MeanState mean;
  mean.network.weights = network.weights;
  mean.network.moving = network.moving;
  return mean;
}

void follow(const MeanOptions& options, const NetworkState& network, MeanState& mean) {
  const auto n = static_cast<double>(++mean.updates);
  const double decay = std::min(options.decay, n / (n + 9.0));
  follow_values(decay, network.weights, mean.network.weights);
  follow_values(decay, network.moving, mean.network.moving);
}

}  // namespace troupe::pipeline
