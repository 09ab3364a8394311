#include "study/surrogate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace troupe::study {
namespace {

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Costs for the process. Those that are far worse than the others would hide how these differ: they
// count as less bad, in the same order up to there. Where half of them are as good as the best,
// none is tamed. A trial that has failed is as bad as the worst or, where all others are equal,
// worse. Then the mean is 0 and the variance 1.
std::vector<double> tamed(const std::vector<Observation>& ended) {
  std::vector<double> costs;
  for (const Observation& each : ended) {
    if (each.cost) costs.push_back(*each.cost);
  }
  const double best = *std::ranges::min_element(costs), middle = median_of(costs);
  const double most = *std::ranges::max_element(costs);
  const double worst = middle > best ? std::min(most, middle + 3.0 * (middle - best)) : most;
  const double failed = worst > best ? worst : best + std::max(std::abs(best), 1.0);
  std::vector<double> all;
  for (const Observation& each : ended) {
    all.push_back(each.cost ? std::min(*each.cost, worst) : failed);
  }
  const auto count = static_cast<double>(all.size());
  const double mean = std::accumulate(all.begin(), all.end(), 0.0) / count;
  double squares = 0.0;
  for (double& cost : all) {
    cost -= mean;
    squares += cost * cost;
  }
  const double deviation = std::sqrt(squares / count);
  for (double& cost : all) cost /= deviation > 0.0 ? deviation : 1.0;
  return all;
}

std::vector<bool> words_of(const Space& space) {
  std::vector<bool> is_word;
  for (const Dimension& dimension : space) is_word.push_back(dimension.choice.has_value());
  return is_word;
}

std::vector<Coordinates> places_of(const Space& space, const std::vector<Observation>& ended) {
  std::vector<Coordinates> places;
  for (const Observation& each : ended) places.push_back(place_of(space, each.point));
  return places;
}

}  // namespace

Coordinates place_of(const Space& space, const Point& point) {
  constexpr double kMiddle = 0.5;
  Coordinates place;
  for (std::size_t i = 0; i < space.size(); ++i) {
    const bool is_missing = point[i] == kAbsent && !space[i].choice;
    place.push_back(is_missing ? kMiddle : share_of(space[i], point[i]));
  }
  return place;
}

Surrogate::Surrogate(const Space& space, const std::vector<Observation>& ended)
    : space_(space),
      is_word_(words_of(space)),
      places_(places_of(space, ended)),
      costs_(tamed(ended)),
      process_(is_word_, places_, costs_, fit_kernel(is_word_, places_, costs_)),
      best_(std::numeric_limits<double>::infinity()) {
  for (const Coordinates& place : places_) best_ = std::min(best_, process_.at(place).mean);
}

void Surrogate::believe(const std::vector<Point>& pending) {
  if (pending.empty()) return;
  for (const Point& point : pending) {
    places_.push_back(place_of(space_, point));
    costs_.push_back(process_.at(places_.back()).mean);
    best_ = std::min(best_, costs_.back());
  }
  process_ = GaussianProcess(is_word_, places_, costs_, process_.options());
}

}  // namespace troupe::study
