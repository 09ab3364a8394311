#include "model/physics/sample_drawer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::model {

std::vector<std::uint32_t> by_energy(const ShowerSample& sample) {
  std::vector<std::uint32_t> order(sample.showers().size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return sample.showers()[a].energy_gev < sample.showers()[b].energy_gev;
  });
  return order;
}

double widening_of(std::size_t stratum) {
  const auto size = static_cast<double>(stratum);
  return stratum > 1 ? std::sqrt(size / (size - 1.0)) : 1.0;
}

SampleDrawer::SampleDrawer(const ShowerSample& sample, std::size_t stratum)
    : order_(by_energy(sample)), stratum_(std::max<std::size_t>(stratum, 1)) {}

std::vector<std::uint32_t> SampleDrawer::draw(std::size_t size,
                                              const runtime::RandomPosition& position) const {
  std::vector<std::uint32_t> times(order_.size());
  if (order_.empty()) return times;
  const std::size_t all = order_.size(), strata = std::max<std::size_t>(all / stratum_, 1);
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t stratum = std::min(i * all / size / stratum_, strata - 1);
    const std::size_t first = stratum * stratum_;
    const std::size_t count = (stratum + 1 == strata ? all : first + stratum_) - first;
    const double u = runtime::random_uniform(position, static_cast<std::uint32_t>(i));
    const auto place = static_cast<std::size_t>(u * static_cast<double>(count));
    ++times[order_[first + std::min(place, count - 1)]];
  }
  return times;
}

SampleTurner::SampleTurner(const ShowerSample& data, const ShowerSample& generated, bool pairs)
    : data_(by_energy(data)), generated_(by_energy(generated)), pairs_(pairs) {}

SampleTurner::Sides SampleTurner::turn(const runtime::RandomPosition& position) const {
  Sides turned{std::vector<std::uint8_t>(data_.size()),
               std::vector<std::uint8_t>(generated_.size())};
  if (pairs_) {
    for (std::size_t rank = 0; rank < data_.size(); ++rank) {
      const double u = runtime::random_uniform(position, static_cast<std::uint32_t>(rank));
      turned.data[data_[rank]] = turned.generated[generated_[rank]] = u < 0.5 ? 1 : 0;
    }
    return turned;
  }
  // One after the other is taken into the first sample with the share that is still to be taken.
  std::size_t wanted = data_.size(), left = data_.size() + generated_.size();
  for (std::size_t i = 0; left > 0; ++i, --left) {
    const double u = runtime::random_uniform(position, static_cast<std::uint32_t>(i));
    const bool taken = u * static_cast<double>(left) < static_cast<double>(wanted);
    if (taken) --wanted;
    if (i < data_.size()) {
      turned.data[i] = taken ? 0 : 1;
    } else {
      turned.generated[i - data_.size()] = taken ? 1 : 0;
    }
  }
  return turned;
}

}  // namespace troupe::model
