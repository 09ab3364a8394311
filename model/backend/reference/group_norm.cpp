#include <algorithm>
#include <cmath>

#include "model/backend/reference/kernels.h"

namespace troupe::model::reference {

// Two passes as in batch norm, by sample: the means of the groups, then the squares of the
// deviations from them.
template <class T>
void run(const GroupNormForward& norm, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  const auto* gamma = call.operand<const T>(1);
  const auto* beta = call.operand<const T>(2);
  auto* y = call.operand<T>(3);
  auto* mean = call.operand<T>(4);
  auto* inverse_deviation = call.operand<T>(5);
  const std::int64_t channels = norm.channels, size = norm.rows * channels;
  const std::int64_t of_group = channels / norm.groups;
  auto* sums = reinterpret_cast<double*>(call.scratch);
  auto* means = sums + channels;
  const double count = static_cast<double>(norm.rows * of_group);
  const auto total = [&](std::int64_t group) {
    double total = 0.0;
    for (std::int64_t c = 0; c < of_group; ++c) total += sums[group * of_group + c];
    return total;
  };
  for (std::int64_t n = 0; n < norm.samples; ++n, x += size, y += size) {
    std::fill_n(sums, channels, 0.0);
    for (std::int64_t i = 0; i < size; ++i) sums[i % channels] += static_cast<double>(x[i]);
    for (std::int64_t group = 0; group < norm.groups; ++group) means[group] = total(group) / count;
    std::fill_n(sums, channels, 0.0);
    for (std::int64_t i = 0; i < size; ++i) {
      const double deviation = static_cast<double>(x[i]) - means[i % channels / of_group];
      sums[i % channels] += deviation * deviation;
    }
    for (std::int64_t group = 0; group < norm.groups; ++group) {
      *mean++ = static_cast<T>(means[group]);
      *inverse_deviation++ = static_cast<T>(1.0 / std::sqrt(total(group) / count + norm.epsilon));
    }
    const T *of_means = mean - norm.groups, *of_deviations = inverse_deviation - norm.groups;
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t c = i % channels, group = c / of_group;
      y[i] = (x[i] - of_means[group]) * (of_deviations[group] * gamma[c]) + beta[c];
    }
  }
}

// With d = gamma dy and x^ the normalised x: dx = (d - mean(d) - x^ mean(d x^)) / deviation, the
// means over the group.
template <class T>
void run(const GroupNormBackward& norm, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  const auto* dy = call.operand<const T>(1);
  const auto* gamma = call.operand<const T>(2);
  const auto* mean = call.operand<const T>(3);
  const auto* inverse_deviation = call.operand<const T>(4);
  auto* dx = call.operand<T>(5);
  auto* dgamma = call.operand<T>(6);
  auto* dbeta = call.operand<T>(7);
  const std::int64_t channels = norm.channels, size = norm.rows * channels;
  const std::int64_t of_group = channels / norm.groups;
  auto* sums = reinterpret_cast<double*>(call.scratch);
  auto *products = sums + channels, *all_sums = products + channels,
       *all_products = all_sums + channels, *mean_sums = all_products + channels,
       *mean_products = mean_sums + norm.groups;
  const double count = static_cast<double>(norm.rows * of_group);
  std::fill_n(all_sums, 2 * channels, 0.0);
  for (std::int64_t n = 0; n < norm.samples; ++n) {
    const auto normalised = [&](std::int64_t i) {
      const std::int64_t group = i % channels / of_group;
      return (x[i] - mean[group]) * inverse_deviation[group];
    };
    std::fill_n(sums, 2 * channels, 0.0);
    for (std::int64_t i = 0; i < size; ++i) {
      sums[i % channels] += static_cast<double>(dy[i]);
      products[i % channels] += static_cast<double>(dy[i]) * static_cast<double>(normalised(i));
    }
    std::fill_n(mean_sums, 2 * norm.groups, 0.0);
    for (std::int64_t c = 0; c < channels; ++c) {
      all_sums[c] += sums[c];
      all_products[c] += products[c];
      mean_sums[c / of_group] += static_cast<double>(gamma[c]) * sums[c];
      mean_products[c / of_group] += static_cast<double>(gamma[c]) * products[c];
    }
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t c = i % channels, group = c / of_group;
      const T centred = gamma[c] * dy[i] - static_cast<T>(mean_sums[group] / count) -
                        normalised(i) * static_cast<T>(mean_products[group] / count);
      dx[i] = inverse_deviation[group] * centred;
    }
    x += size;
    dy += size;
    dx += size;
    mean += norm.groups;
    inverse_deviation += norm.groups;
  }
  for (std::int64_t c = 0; c < channels; ++c) {
    if (dgamma) dgamma[c] = static_cast<T>(all_products[c]);
    if (dbeta) dbeta[c] = static_cast<T>(all_sums[c]);
  }
}

TROUPE_INSTANTIATE_RUN(GroupNormForward);
TROUPE_INSTANTIATE_RUN(GroupNormBackward);

}  // namespace troupe::model::reference
