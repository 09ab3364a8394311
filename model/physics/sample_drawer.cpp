#include "model/physics/sample_drawer.h"

#include <algorithm>
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

}  // namespace troupe::model
