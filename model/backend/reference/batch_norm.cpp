#include "model/backend/reference/kernels.h"

#include <algorithm>
#include <cmath>

namespace troupe::model::reference {

// Two passes find the statistics: the mean, then the squares of the deviations from it. The batch
// is normalised by its own variance, squares / n; the moving statistics get the unbiased one.
template <class T>
void run(const BatchNormTraining& norm, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  const auto* gamma = call.operand<const T>(1);
  const auto* beta = call.operand<const T>(2);
  auto* y = call.operand<T>(3);
  auto* mean = call.operand<T>(4);
  auto* inverse_deviation = call.operand<T>(5);
  auto* batch_mean = call.operand<T>(6);
  auto* batch_variance = call.operand<T>(7);
  const std::int64_t channels = norm.channels;
  auto* means = reinterpret_cast<double*>(call.scratch);
  auto* squares = means + channels;
  std::fill_n(means, 2 * channels, 0.0);
  const double n = static_cast<double>(std::max<std::int64_t>(norm.rows, 1));
  for (std::int64_t r = 0; r < norm.rows; ++r) {
    for (std::int64_t c = 0; c < channels; ++c)
      means[c] += static_cast<double>(x[r * channels + c]);
  }
  for (std::int64_t c = 0; c < channels; ++c) means[c] /= n;
  for (std::int64_t r = 0; r < norm.rows; ++r) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const double deviation = static_cast<double>(x[r * channels + c]) - means[c];
      squares[c] += deviation * deviation;
    }
  }
  for (std::int64_t c = 0; c < channels; ++c) {
    mean[c] = batch_mean[c] = static_cast<T>(means[c]);
    inverse_deviation[c] = static_cast<T>(1.0 / std::sqrt(squares[c] / n + norm.epsilon));
    batch_variance[c] = static_cast<T>(squares[c] / std::max(n - 1.0, 1.0));
  }
  for (std::int64_t r = 0; r < norm.rows; ++r) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t i = r * channels + c;
      y[i] = (x[i] - mean[c]) * (inverse_deviation[c] * gamma[c]) + beta[c];
    }
  }
}

template <class T>
void run(const BatchNormInference& norm, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  const auto* gamma = call.operand<const T>(1);
  const auto* beta = call.operand<const T>(2);
  const auto* mean = call.operand<const T>(3);
  const auto* variance = call.operand<const T>(4);
  auto* y = call.operand<T>(5);
  for (std::int64_t c = 0; c < norm.channels; ++c) {
    const double deviation = std::sqrt(static_cast<double>(variance[c]) + norm.epsilon);
    const T scale = static_cast<T>(1.0 / deviation) * gamma[c];
    for (std::int64_t r = 0; r < norm.rows; ++r) {
      const std::int64_t i = r * norm.channels + c;
      y[i] = (x[i] - mean[c]) * scale + beta[c];
    }
  }
}

// The batch's mean and variance depend on each of its values, so that, with x^ the normalised x, dx
// = gamma / deviation (dy - mean(dy) - x^ mean(dy x^)). The sums of dy x^ and of dy are the
// gradients of gamma and beta.
template <class T>
void run(const BatchNormBackward& norm, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  const auto* dy = call.operand<const T>(1);
  const auto* gamma = call.operand<const T>(2);
  const auto* mean = call.operand<const T>(3);
  const auto* inverse_deviation = call.operand<const T>(4);
  auto* dx = call.operand<T>(5);
  auto* dgamma = call.operand<T>(6);
  auto* dbeta = call.operand<T>(7);
  const std::int64_t channels = norm.channels;
  auto* sums = reinterpret_cast<double*>(call.scratch);
  auto* products = sums + channels;
  std::fill_n(sums, 2 * channels, 0.0);
  const auto normalised = [&](std::int64_t i, std::int64_t c) {
    return (x[i] - mean[c]) * inverse_deviation[c];
  };
  for (std::int64_t r = 0; r < norm.rows; ++r) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t i = r * channels + c;
      sums[c] += static_cast<double>(dy[i]);
      products[c] += static_cast<double>(dy[i]) * static_cast<double>(normalised(i, c));
    }
  }
  for (std::int64_t c = 0; c < channels; ++c) {
    if (dgamma) dgamma[c] = static_cast<T>(products[c]);
    if (dbeta) dbeta[c] = static_cast<T>(sums[c]);
  }
  const double n = static_cast<double>(std::max<std::int64_t>(norm.rows, 1));
  for (std::int64_t r = 0; r < norm.rows; ++r) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t i = r * channels + c;
      const T centred =
          dy[i] - static_cast<T>(sums[c] / n) - normalised(i, c) * static_cast<T>(products[c] / n);
      dx[i] = gamma[c] * inverse_deviation[c] * centred;
    }
  }
}

TROUPE_INSTANTIATE_RUN(BatchNormTraining);
TROUPE_INSTANTIATE_RUN(BatchNormInference);
TROUPE_INSTANTIATE_RUN(BatchNormBackward);

}  // namespace troupe::model::reference
