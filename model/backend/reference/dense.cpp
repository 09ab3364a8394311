#include "model/backend/reference/kernels.h"

#include <algorithm>

namespace troupe::model::reference {

template <class T>
void run(const DenseForward& dense, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  const auto* kernel = call.operand<const T>(1);
  const auto* bias = dense.bias ? call.operand<const T>(2) : nullptr;
  for (std::int64_t b = 0; b < dense.batch; ++b) {
    T* __restrict y = call.operand<T>(3) + b * dense.units;
    std::fill_n(y, dense.units, T{0});
    for (std::int64_t i = 0; i < dense.inputs; ++i) {
      const T value = x[b * dense.inputs + i];
      const T* __restrict row = kernel + i * dense.units;
      for (std::int64_t u = 0; u < dense.units; ++u) y[u] += value * row[u];
    }
    if (!bias) continue;
    for (std::int64_t u = 0; u < dense.units; ++u) y[u] += bias[u];
  }
}

template <class T>
void run(const DenseBackwardInput& dense, const KernelCall& call) {
  // At a time: a vector of sums, none of which waits for another, and gradients that stay in the
  // cache.
  constexpr std::int64_t kEvents = 16, kUnits = 64;
  const auto* dy = call.operand<const T>(0);
  const auto* kernel = call.operand<const T>(1);
  auto* dx = call.operand<T>(2);
  std::fill_n(dx, dense.batch * dense.inputs, T{0});
  T gradients[kUnits][kEvents] = {};  // of events that are not there: 0, or old ones
  for (std::int64_t b = 0; b < dense.batch; b += kEvents) {
    const std::int64_t events = std::min(kEvents, dense.batch - b);
    for (std::int64_t u = 0; u < dense.units; u += kUnits) {
      const std::int64_t units = std::min(kUnits, dense.units - u);
      for (std::int64_t e = 0; e < events; ++e) {
        const T* from = dy + (b + e) * dense.units + u;
        for (std::int64_t k = 0; k < units; ++k) gradients[k][e] = from[k];
      }
      for (std::int64_t i = 0; i < dense.inputs; ++i) {
        const T* row = kernel + i * dense.units + u;
        T* first = dx + b * dense.inputs + i;
        T sums[kEvents] = {};
        for (std::int64_t e = 0; e < events; ++e) sums[e] = first[e * dense.inputs];
        for (std::int64_t k = 0; k < units; ++k) {
#pragma omp simd
          for (std::int64_t e = 0; e < kEvents; ++e) sums[e] += gradients[k][e] * row[k];
        }
        for (std::int64_t e = 0; e < events; ++e) first[e * dense.inputs] = sums[e];
      }
    }
  }
}

template <class T>
void run(const DenseBackwardParameters& dense, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  const auto* dy = call.operand<const T>(1);
  auto* dkernel = call.operand<T>(2);
  for (std::int64_t i = 0; i < dense.inputs; ++i) {
    T* __restrict row = dkernel + i * dense.units;
    std::fill_n(row, dense.units, T{0});
    for (std::int64_t b = 0; b < dense.batch; ++b) {
      const T value = x[b * dense.inputs + i];
      const T* __restrict gradient = dy + b * dense.units;
      for (std::int64_t u = 0; u < dense.units; ++u) row[u] += value * gradient[u];
    }
  }
  if (!dense.bias) return;
  auto* dbias = call.operand<T>(3);
  std::fill_n(dbias, dense.units, T{0});
  for (std::int64_t b = 0; b < dense.batch; ++b) {
    for (std::int64_t u = 0; u < dense.units; ++u) dbias[u] += dy[b * dense.units + u];
  }
}

TROUPE_INSTANTIATE_RUN(DenseForward);
TROUPE_INSTANTIATE_RUN(DenseBackwardInput);
TROUPE_INSTANTIATE_RUN(DenseBackwardParameters);

}  // namespace troupe::model::reference
