#include "model/backend/cpu/dense.h"

#include <algorithm>

#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/kernel_call.h"
#include "model/backend/reference/kernels.h"

namespace troupe::model::cpu {
namespace {

// Units that fill whole lanes.
std::int64_t whole_units(std::int64_t units) { return units / kPositionLanes * kPositionLanes; }

class ForwardKernel final : public Kernel {
 public:
  explicit ForwardKernel(const DenseForward& dense)
      : dense_(dense), whole_(whole_units(dense.units)) {}

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(dense_.batch * dense_.inputs) * sizeof(float);
  }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const auto* x = call.operand<const float>(0);
    const auto* kernel = call.operand<const float>(1);
    auto* y = call.operand<float>(3);
    // A row of the kernel is one plane whose positions are units, so the layer is a convolution
    // with one tap, whose channels are the inputs and whose outputs are the samples. x stands the
    // other way round, and is transposed.
    auto* weights = reinterpret_cast<float*>(scratch);  // (input, sample)
    for (std::int64_t i = 0; i < dense_.inputs; ++i) {
      for (std::int64_t n = 0; n < dense_.batch; ++n) {
        weights[i * dense_.batch + n] = x[n * dense_.inputs + i];
      }
    }
    multiply_planes(PlaneProduct<float>{.taps = {&kernel, 1},
                                        .channels = dense_.inputs,
                                        .channel_stride = dense_.units,
                                        .weights = weights,
                                        .outputs = dense_.batch,
                                        .weights_stride = dense_.batch,
                                        .positions = whole_,
                                        .sums = y,
                                        .sums_stride = dense_.units});
    for (std::int64_t n = 0; n < dense_.batch; ++n) {
      for (std::int64_t u = whole_; u < dense_.units; ++u) {
        float sum = 0.0f;
        for (std::int64_t i = 0; i < dense_.inputs; ++i) {
          sum += x[n * dense_.inputs + i] * kernel[i * dense_.units + u];
        }
        y[n * dense_.units + u] = sum;
      }
      if (dense_.bias) add(call.operand<const float>(2), y + n * dense_.units);
    }
  }

 private:
  void add(const float* bias, float* y) const {
    for (std::int64_t u = 0; u < dense_.units; ++u) y[u] += bias[u];
  }

  const DenseForward dense_;
  const std::int64_t whole_;
};

class ParameterKernel final : public Kernel {
 public:
  explicit ParameterKernel(const DenseBackwardParameters& dense)
      : dense_(dense), whole_(whole_units(dense.units)) {}

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const auto* x = call.operand<const float>(0);
    const auto* dy = call.operand<const float>(1);
    auto* dkernel = call.operand<float>(2);
    // The same product with other roles: channels are the samples, outputs the inputs.
    multiply_planes(PlaneProduct<float>{.taps = {&dy, 1},
                                        .channels = dense_.batch,
                                        .channel_stride = dense_.units,
                                        .weights = x,
                                        .outputs = dense_.inputs,
                                        .weights_stride = dense_.inputs,
                                        .positions = whole_,
                                        .sums = dkernel,
                                        .sums_stride = dense_.units});
    for (std::int64_t u = whole_; u < dense_.units; ++u) {
      for (std::int64_t i = 0; i < dense_.inputs; ++i) {
        float sum = 0.0f;
        for (std::int64_t n = 0; n < dense_.batch; ++n) {
          sum += x[n * dense_.inputs + i] * dy[n * dense_.units + u];
        }
        dkernel[i * dense_.units + u] = sum;
      }
    }
    if (!dense_.bias) return;
    auto* dbias = call.operand<float>(3);
    std::fill_n(dbias, dense_.units, 0.0f);
    for (std::int64_t n = 0; n < dense_.batch; ++n) {
      for (std::int64_t u = 0; u < dense_.units; ++u) dbias[u] += dy[n * dense_.units + u];
    }
  }

 private:
  const DenseBackwardParameters dense_;
  const std::int64_t whole_;
};

bool in_vectors(std::int64_t units) { return plane_vectors_supported() && units >= kPositionLanes; }

}  // namespace

std::unique_ptr<Kernel> make_kernel(const DenseForward& dense) {
  if (in_vectors(dense.units)) return std::make_unique<ForwardKernel>(dense);
  return reference::make_kernel<float>(dense);
}

std::unique_ptr<Kernel> make_kernel(const DenseBackwardParameters& dense) {
  if (in_vectors(dense.units)) return std::make_unique<ParameterKernel>(dense);
  return reference::make_kernel<float>(dense);
}

}  // namespace troupe::model::cpu
