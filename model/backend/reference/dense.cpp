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
  const auto* dy = call.operand<const T>(0);
  const auto* kernel = call.operand<const T>(1);
  auto* dx = call.operand<T>(2);
  for (std::int64_t b = 0; b < dense.batch; ++b, dy += dense.units) {
    for (std::int64_t i = 0; i < dense.inputs; ++i) {
      T sum{};
      for (std::int64_t u = 0; u < dense.units; ++u) sum += dy[u] * kernel[i * dense.units + u];
      *dx++ = sum;
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
