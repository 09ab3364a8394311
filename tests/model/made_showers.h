#pragma once

// Showers made by one law, a change of them, and the figures and faults that samples of them have.

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/physics/figures.h"
#include "model/physics/verdict.h"
#include "runtime/base/error.h"
#include "tests/model/physics_samples.h"

namespace troupe::model {

inline constexpr Extent kSpace{8, 8, 12};

// A shower of 2 % of the energy that begins at a random depth; spots fall off across the axis.
inline Image made_shower(std::uint64_t seed, std::uint32_t event, double energy_gev) {
  const runtime::RandomPosition position{seed, event, 0, 0, 0};
  Image image = empty_image(kSpace);
  std::uint32_t drawn = 0;
  const auto normal = [&] { return runtime::random_normal(position, drawn++); };
  const double response = 0.02 * (1.0 + 0.05 * normal());
  const double depth = 3.0 + 0.5 * std::log(energy_gev) + 0.8 * normal();
  constexpr int kSpots = 150;
  for (int spot = 0; spot < kSpots; ++spot) {
    const auto place = [&](double centre, double width, std::int64_t cells) {
      const auto found = static_cast<std::int64_t>(std::floor(centre + width * normal()));
      return std::clamp<std::int64_t>(found, 0, cells - 1);
    };
    const std::int64_t x = place(4.0, 0.9, kSpace[0]), y = place(4.0, 0.9, kSpace[1]);
    const std::int64_t z = place(depth, 1.6, kSpace[2]);
    image[cell_index(kSpace, x, y, z)] += static_cast<float>(response * energy_gev / kSpots);
  }
  return image;
}

inline double energy_of(std::uint32_t event) { return 20.0 + 60.0 * (event % 97) / 97.0; }

inline constexpr std::uint32_t kShowers = 240;

using Change = std::function<Image(std::uint32_t event, Image image)>;

// Showers of the same energies whatever the seed, each changed.
inline ShowerSample sample(std::uint64_t seed, const Change& change = {}) {
  StatisticsOptions options;
  options.space = kSpace;
  options.energy_bins = equal_energy_bins(20.0, 80.0, 3);
  ShowerSample made(options, true);
  for (std::uint32_t event = 0; event < kShowers; ++event) {
    Image image = made_shower(seed, event, energy_of(event));
    made.add(change ? change(event, std::move(image)) : image, energy_of(event));
  }
  return made;
}

inline const Backend* trainer() {
  static const auto backend = make_portable_backend();
  CHECK(backend.ok(), "this machine trains no classifier");
  return backend->get();
}

// Some figures take long, and not every test looks at them.
enum class Classifier { kNone, kTrained };

inline std::vector<Figure> figures_of(const ShowerSample& data, const ShowerSample& generated,
                                      int replicas = 40,
                                      Classifier classifier = Classifier::kNone) {
  runtime::ThreadTeam team(1);
  FigureOptions options;
  options.replicas = replicas;
  if (classifier == Classifier::kTrained) options.classifier = trainer();
  return compute_figures(data, generated, options, team);
}

inline std::set<std::string> kinds_of_faults(const ShowerSample& data,
                                             const ShowerSample& generated) {
  std::set<std::string> kinds;
  const auto figures = figures_of(data, generated, 40, Classifier::kTrained);
  for (const Fault& fault : find_faults(data, generated, figures)) kinds.insert(fault.kind);
  return kinds;
}

}  // namespace troupe::model
