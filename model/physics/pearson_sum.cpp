#include "model/physics/pearson_sum.h"

#include <cmath>

#include "runtime/base/error.h"

namespace troupe::model {
namespace {

// A feature whose variance is below this part of its mean square is constant but for rounding.
constexpr double kConstantFeature = 1e-12;

template <class Power>
std::optional<double> mean_over_pairs(std::span<const std::optional<double>> a,
                                      std::span<const std::optional<double>> b, Power power) {
  CHECK(a.size() == b.size(), "correlations of different features do not compare");
  double sum = 0.0;
  std::int64_t pairs = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i] || !b[i]) continue;
    sum += power(*a[i] - *b[i]);
    ++pairs;
  }
  if (pairs == 0) return std::nullopt;
  return sum / static_cast<double>(pairs);
}

}  // namespace

PearsonSum::PearsonSum(std::size_t features)
    : sums_(features),
      squares_(features),
      products_(features * (features - 1) / 2),
      centred_(features) {}

void PearsonSum::add(std::span<const double> values, double times) {
  CHECK(values.size() == sums_.size(), "an event has another number of features");
  if (origin_.empty()) origin_.assign(values.begin(), values.end());
  events_ += times;
  for (std::size_t i = 0; i < values.size(); ++i) centred_[i] = values[i] - origin_[i];
  double* product = products_.data();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double weighted = times * centred_[i];
    sums_[i] += weighted;
    squares_[i] += weighted * centred_[i];
    for (std::size_t j = i + 1; j < values.size(); ++j) *product++ += weighted * centred_[j];
  }
}

std::vector<std::optional<double>> PearsonSum::correlations() const {
  const std::size_t features = sums_.size();
  std::vector<std::optional<double>> found(products_.size());
  if (events_ == 0.0) return found;
  std::vector<double> mean(features), variance(features);
  std::vector<bool> varies(features);
  for (std::size_t i = 0; i < features; ++i) {
    mean[i] = sums_[i] / events_;
    variance[i] = squares_[i] / events_ - mean[i] * mean[i];
    const double value = origin_[i] + mean[i];
    varies[i] = variance[i] > kConstantFeature * (variance[i] + value * value);
  }
  std::size_t pair = 0;
  for (std::size_t i = 0; i < features; ++i) {
    for (std::size_t j = i + 1; j < features; ++j, ++pair) {
      if (!varies[i] || !varies[j]) continue;
      const double covariance = products_[pair] / events_ - mean[i] * mean[j];
      found[pair] = covariance / std::sqrt(variance[i] * variance[j]);
    }
  }
  return found;
}

std::optional<double> rms_difference(std::span<const std::optional<double>> a,
                                     std::span<const std::optional<double>> b) {
  const auto square = mean_over_pairs(a, b, [](double r) { return r * r; });
  return square ? std::optional(std::sqrt(*square)) : std::nullopt;
}

std::optional<double> mean_difference(std::span<const std::optional<double>> a,
                                      std::span<const std::optional<double>> b) {
  return mean_over_pairs(a, b, [](double r) { return std::abs(r); });
}

}  // namespace troupe::model
