#include "study/importance.h"

#include <algorithm>
#include <utility>

#include "study/surrogate.h"

namespace troupe::study {
namespace {

constexpr std::uint32_t kPlaces = 256;         // drawn from the space
constexpr std::uint32_t kMostValues = 12;      // of a dimension
constexpr std::size_t kMostTrialsAsked = 150;  // the effort grows with the cube of their number
constexpr double kLeastVariance = 1e-12;       // of costs with variance 1

double variance_of(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  double mean = 0.0, squares = 0.0;
  for (const double value : values) mean += value / count;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares / count;
}

// Values that stand for all of a dimension, each for an equal part of it.
std::vector<double> values_of(const Dimension& dimension) {
  const std::uint64_t all = levels(dimension);
  const bool each = dimension.choice || (all > 0 && all <= kMostValues);
  const auto count = each ? static_cast<std::uint32_t>(all) : kMostValues;
  std::vector<double> values;
  for (std::uint32_t i = 0; i < count; ++i) {
    values.push_back(value_at(dimension, (i + 0.5) / count));
  }
  return values;
}

// No more than so many, evenly over all.
std::vector<Observation> some_of(const std::vector<Observation>& all) {
  const std::size_t count = std::min(all.size(), kMostTrialsAsked);
  std::vector<Observation> some;
  for (std::size_t i = 0; i < count; ++i) some.push_back(all[i * all.size() / count]);
  return some;
}

}  // namespace

std::vector<double> importance_of(const Space& space, const std::vector<Observation>& ended) {
  const std::vector<Observation> asked = some_of(ended);
  const auto has_cost = [](const Observation& each) { return each.cost.has_value(); };
  const auto count = std::ranges::count_if(asked, has_cost);
  if (count < static_cast<std::ptrdiff_t>(kLeastForImportance)) return {};
  const Surrogate surrogate(space, asked);
  std::vector<Point> places;
  for (std::uint32_t i = 0; i < kPlaces; ++i) places.push_back(spread_point(space, 0, i, kPlaces));
  const auto expected = [&](Point point) {
    return surrogate.at(settled(space, std::move(point))).mean;
  };
  std::vector<double> all;
  for (const Point& place : places) all.push_back(expected(place));
  const double variance = variance_of(all);
  if (variance < kLeastVariance) return {};
  std::vector<double> shares;
  for (std::size_t i = 0; i < space.size(); ++i) {
    std::vector<double> means;
    for (const double value : values_of(space[i])) {
      means.push_back(0.0);
      for (Point place : places) {
        place[i] = value;
        means.back() += expected(std::move(place)) / kPlaces;
      }
    }
    shares.push_back(std::min(1.0, variance_of(means) / variance));
  }
  return shares;
}

}  // namespace troupe::study
