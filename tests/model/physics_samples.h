#pragma once

// Showers whose figures are known in closed form.

#include <cstdint>
#include <vector>

#include "model/tensor.h"
#include "runtime/base/random.h"

namespace troupe::model {

inline constexpr Extent kSampleSpace{5, 4, 7};

using Image = std::vector<float>;

inline std::size_t cell_index(const Extent& space, std::int64_t x, std::int64_t y, std::int64_t z) {
  return static_cast<std::size_t>((x * space[1] + y) * space[2] + z);
}

inline Image empty_image(const Extent& space = kSampleSpace) {
  return Image(static_cast<std::size_t>(space[0] * space[1] * space[2]), 0.0F);
}

// cell = x_part[x] y_part[y] z_part[z]
inline Image separable_image(const std::vector<double>& x_part, const std::vector<double>& y_part,
                             const std::vector<double>& z_part) {
  Image image;
  for (const double x : x_part) {
    for (const double y : y_part) {
      for (const double z : z_part) image.push_back(static_cast<float>(x * y * z));
    }
  }
  return image;
}

struct SampleEvent {
  Image gev;
  double energy_gev;
};

// Random showers of 2 % of an energy between 10 and 490 GeV, centred with fluctuations.
inline std::vector<SampleEvent> random_sample(std::uint64_t seed, std::uint32_t count,
                                              const Extent& space = kSampleSpace) {
  std::vector<SampleEvent> sample;
  for (std::uint32_t event = 0; event < count; ++event) {
    const runtime::RandomPosition position{seed, event, 0, 0, 0};
    SampleEvent made{empty_image(space), 10.0 + 480.0 * runtime::random_uniform(position, 0)};
    double sum = 0.0;
    for (std::size_t i = 0; i < made.gev.size(); ++i) {
      const double u = runtime::random_uniform(position, static_cast<std::uint32_t>(i) + 1);
      made.gev[i] = static_cast<float>(u * u * u * u);
      sum += static_cast<double>(made.gev[i]);
    }
    for (float& cell : made.gev) cell *= static_cast<float>(0.02 * made.energy_gev / sum);
    sample.push_back(made);
  }
  return sample;
}

}  // namespace troupe::model
