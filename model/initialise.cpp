#include <algorithm>
#include <cmath>

#include "model/network.h"
#include "model/streams.h"
#include "runtime/base/random.h"

namespace troupe::model {
namespace {

using runtime::RandomPosition;

// Deviation of a standard normal number truncated at +-2.
constexpr double kTruncatedDeviation = 0.87962566103423978;

void fill_uniform(const RandomPosition& position, double limit, float* out, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) {
    const double u = runtime::random_uniform(position, static_cast<std::uint32_t>(i));
    out[i] = static_cast<float>(limit * (2.0 * u - 1.0));
  }
}

// Draws again at the next slot, not at the next index, so that element i has the same number in a
// tensor of any size.
double truncated_normal(RandomPosition position, std::uint32_t index) {
  double value = runtime::random_normal(position, index);
  while (std::abs(value) > 2.0) {
    CHECK(position.slot < 255, "255 normal numbers in a row beyond two deviations");
    ++position.slot;
    value = runtime::random_normal(position, index);
  }
  return value;
}

void fill_truncated_normal(const RandomPosition& position, double deviation, float* out,
                           std::int64_t size) {
  const double scale = deviation / kTruncatedDeviation;
  for (std::int64_t i = 0; i < size; ++i) {
    out[i] = static_cast<float>(truncated_normal(position, static_cast<std::uint32_t>(i)) * scale);
  }
}

void initialise(const ParameterTensor& tensor, const RandomPosition& position, float* out) {
  const double fan_in = static_cast<double>(tensor.fan_in);
  const double fans = static_cast<double>(tensor.fan_in + tensor.fan_out);
  switch (tensor.initialiser) {
    case Initialiser::kGlorotUniform:
      return fill_uniform(position, std::sqrt(6.0 / fans), out, tensor.size);
    case Initialiser::kHeUniform:
      return fill_uniform(position, std::sqrt(6.0 / fan_in), out, tensor.size);
    case Initialiser::kGlorotNormal:
      return fill_truncated_normal(position, std::sqrt(2.0 / fans), out, tensor.size);
    case Initialiser::kZeros:
      std::fill_n(out, tensor.size, 0.0F);
      return;
    case Initialiser::kOnes:
      std::fill_n(out, tensor.size, 1.0F);
      return;
  }
  CHECK(false, "unknown initialiser");
}

}  // namespace

void initialise_parameters(const ParameterLayout& layout, std::uint64_t seed, int network_number,
                           float* weights, float* moving) {
  for (std::size_t i = 0; i < layout.weights.size(); ++i) {
    const RandomPosition position{seed, 0, 0, 0,
                                  initialiser_stream(network_number, static_cast<int>(i))};
    initialise(layout.weights[i], position, weights + layout.weights[i].offset);
  }
  for (const ParameterTensor& tensor : layout.moving) {
    initialise(tensor, RandomPosition{}, moving + tensor.offset);
  }
}

}  // namespace troupe::model
