#include "model/physics/shower_neighbours.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "model/physics/feature_distances.h"
#include "model/physics/image_similarity.h"

namespace troupe::model {
namespace {

// Showers of each sample. The work grows with their number times that of all showers of the data.
constexpr std::size_t kMostCompared = 2000;
// Showers of the data whose sketches are gathered at a time.
constexpr std::size_t kTargetsAtOnce = 20000;

constexpr double kRareShare = 0.01;
constexpr double kCopyShare = 0.5;

// At most `most` of the showers that have a shape, evenly over the sample.
std::vector<std::uint32_t> choose(const ShowerSample& sample, std::size_t most) {
  std::vector<std::uint32_t> filled;
  for (std::uint32_t i = 0; i < sample.showers().size(); ++i) {
    const SampledShower& shower = sample.showers()[i];
    if (shower.usable() && !shower.found.empty()) filled.push_back(i);
  }
  if (filled.size() <= most) return filled;
  std::vector<std::uint32_t> chosen;
  for (std::size_t i = 0; i < most; ++i) chosen.push_back(filled[i * filled.size() / most]);
  return chosen;
}

std::vector<float> sketches_of(const ShowerSample& sample,
                               const std::vector<std::uint32_t>& chosen) {
  std::vector<float> found;
  for (const std::uint32_t i : chosen) {
    found.insert(found.end(), sample.sketches()[i].begin(), sample.sketches()[i].end());
  }
  return found;
}

std::optional<double> ratio(std::optional<double> a, std::optional<double> b) {
  if (!a || !b || *b == 0.0) return std::nullopt;
  return *a / *b;
}

}  // namespace

ShowerNeighbours::ShowerNeighbours(const ShowerSample& data, const ShowerSample& generated,
                                   bool same) {
  if (data.sketches().empty() || generated.sketches().empty()) return;
  const auto all = choose(data, data.showers().size());
  // As many of each, because the nearest of more is nearer.
  const std::size_t count =
      std::min({kMostCompared, all.size(), choose(generated, kMostCompared).size()});
  const auto of_data = choose(data, count), of_generated = choose(generated, count);
  within_data_ = distances(data, of_data, data, of_data, true);
  within_generated_ =
      same ? within_data_ : distances(generated, of_generated, generated, of_generated, true);
  across_ = same ? within_data_ : distances(generated, of_generated, data, of_data, false);
  const Values own = nearest_others(within_data_, data, all);
  if (same) {
    to_all_ = own;
  } else {
    to_all_ = count == all.size() ? across_ : nearest_of(generated, of_generated, data, all);
  }
  // Without repetitions that the data have themselves.
  std::vector<double> sorted = own.values;
  std::erase_if(sorted, [](double each) { return !(each > 0.0 && std::isfinite(each)); });
  if (!sorted.empty()) {
    const auto rare = static_cast<std::ptrdiff_t>(kRareShare * static_cast<double>(sorted.size()));
    std::nth_element(sorted.begin(), sorted.begin() + rare, sorted.end());
    copy_distance_ = kCopyShare * sorted[static_cast<std::size_t>(rare)];
  }
  alike_data_ = similarities(data);
  alike_generated_ = same ? alike_data_ : similarities(generated);
}

ShowerNeighbours::Values ShowerNeighbours::distances(const ShowerSample& from,
                                                     const std::vector<std::uint32_t>& chosen,
                                                     const ShowerSample& to,
                                                     const std::vector<std::uint32_t>& targets,
                                                     bool same) {
  Values found{chosen, nearest_squares(sketches_of(from, chosen), sketches_of(to, targets),
                                       kSketchSize, same)};
  for (double& value : found.values) value = std::sqrt(value);
  return found;
}

ShowerNeighbours::Values ShowerNeighbours::nearest_others(Values within, const ShowerSample& sample,
                                                          const std::vector<std::uint32_t>& all) {
  std::vector<std::uint32_t> others;
  std::ranges::set_difference(all, within.showers, std::back_inserter(others));
  const Values to_others = nearest_of(sample, within.showers, sample, others);
  for (std::size_t i = 0; i < within.values.size(); ++i) {
    within.values[i] = std::min(within.values[i], to_others.values[i]);
  }
  return within;
}

ShowerNeighbours::Values ShowerNeighbours::nearest_of(const ShowerSample& from,
                                                      const std::vector<std::uint32_t>& chosen,
                                                      const ShowerSample& to,
                                                      const std::vector<std::uint32_t>& targets) {
  Values found{chosen, std::vector<double>(chosen.size(), std::numeric_limits<double>::infinity())};
  for (std::size_t first = 0; first < targets.size(); first += kTargetsAtOnce) {
    const auto begin = targets.begin() + static_cast<std::ptrdiff_t>(first);
    const std::size_t count = std::min(kTargetsAtOnce, targets.size() - first);
    const Values some =
        distances(from, chosen, to, {begin, begin + static_cast<std::ptrdiff_t>(count)}, false);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      found.values[i] = std::min(found.values[i], some.values[i]);
    }
  }
  return found;
}

ShowerNeighbours::Pairs ShowerNeighbours::similarities(const ShowerSample& sample) {
  Pairs found;
  std::vector<std::uint32_t> shown;
  for (std::uint32_t i = 0; i < sample.images().size(); ++i) {
    if (sample.showers()[i].usable()) shown.push_back(i);
  }
  for (std::size_t i = 0; i + 1 < shown.size(); ++i) {
    found.showers.emplace_back(shown[i], shown[i + 1]);
    found.values.push_back(structural_similarity(sample.images()[shown[i]],
                                                 sample.images()[shown[i + 1]],
                                                 sample.options().space, kSimilarityRangeGev));
  }
  return found;
}

std::optional<double> ShowerNeighbours::median(const Values& values, Times times) {
  std::vector<std::size_t> order(values.values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values.values[a] < values.values[b]; });
  double all = 0.0, below = 0.0;
  for (const std::uint32_t shower : values.showers) all += times[shower];
  for (const std::size_t i : order) {
    below += times[values.showers[i]];
    if (below * 2.0 < all || below == 0.0) continue;
    return std::isfinite(values.values[i]) ? std::optional(values.values[i]) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> ShowerNeighbours::mean(const Pairs& pairs, Times times) {
  double sum = 0.0, all = 0.0;
  for (std::size_t i = 0; i < pairs.values.size(); ++i) {
    const double weight =
        static_cast<double>(times[pairs.showers[i].first]) * times[pairs.showers[i].second];
    sum += weight * pairs.values[i];
    all += weight;
  }
  if (all == 0.0) return std::nullopt;
  return sum / all;
}

std::optional<double> ShowerNeighbours::copies(Times generated) const {
  double copies = 0.0, all = 0.0;
  for (std::size_t i = 0; i < to_all_.values.size(); ++i) {
    const double weight = generated[to_all_.showers[i]];
    all += weight;
    if (to_all_.values[i] == 0.0 || to_all_.values[i] < copy_distance_) copies += weight;
  }
  if (all == 0.0) return std::nullopt;
  return copies / all;
}

std::optional<double> ShowerNeighbours::nearest(Times data, Times generated) const {
  return ratio(median(across_, generated), median(within_data_, data));
}

std::optional<double> ShowerNeighbours::diversity(Times data, Times generated) const {
  return ratio(median(within_generated_, generated), median(within_data_, data));
}

std::optional<double> ShowerNeighbours::similarity(Times data, Times generated) const {
  const auto of_generated = mean(alike_generated_, generated), of_data = mean(alike_data_, data);
  if (!of_generated || !of_data) return std::nullopt;
  return *of_generated - *of_data;
}

}  // namespace troupe::model
