#include "model/backend/cpu/dense.h"

#include <algorithm>
#include <type_traits>

#include "model/backend/cpu/bfloat16_planes.h"
#include "model/backend/cpu/in_parts.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/scratch.h"
#include "model/backend/kernel_call.h"
#include "model/backend/reference/kernels.h"

namespace troupe::model::cpu {
namespace {

// Units that fill whole lanes.
std::int64_t whole_units(std::int64_t units) { return units / kPositionLanes * kPositionLanes; }

void add_bias(const DenseForward& dense, const float* bias, float* y) {
  for (std::int64_t n = 0; n < dense.batch; ++n, y += dense.units) {
    for (std::int64_t u = 0; u < dense.units; ++u) y[u] += bias[u];
  }
}

void sum_bias(const DenseBackwardParameters& dense, const float* dy, float* dbias) {
  std::fill_n(dbias, dense.units, 0.0f);
  for (std::int64_t n = 0; n < dense.batch; ++n, dy += dense.units) {
    for (std::int64_t u = 0; u < dense.units; ++u) dbias[u] += dy[u];
  }
}

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
    }
    if (dense_.bias) add_bias(dense_, call.operand<const float>(2), y);
  }

 private:
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
    if (dense_.bias) sum_bias(dense_, dy, call.operand<float>(3));
  }

 private:
  const DenseBackwardParameters dense_;
  const std::int64_t whole_;
};

// The number of pairs of so many.
std::int64_t pairs_of(std::int64_t count) { return (count + 1) / 2; }

// Some units at a time, so that their part of the kernel is read once and its pairs stay in the
// cache for all samples.
class PairsForwardKernel final : public Kernel {
 public:
  explicit PairsForwardKernel(const DenseForward& dense)
      : dense_(dense),
        inputs_(plan_.add_array<Bfloat16Pair>(dense.batch * pairs_of(dense.inputs))),
        weights_(plan_.add_array<Bfloat16Pair>(pairs_of(dense.inputs) * kUnits)) {}

  std::size_t scratch_bytes() const override { return plan_.bytes(); }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const auto* kernel = call.operand<const float>(1);
    auto* y = call.operand<float>(3);
    auto* inputs = scratch_at<Bfloat16Pair>(scratch, inputs_);
    auto* weights = scratch_at<Bfloat16Pair>(scratch, weights_);
    const std::int64_t pairs = pairs_of(dense_.inputs);
    columns_to_pairs(dense_.batch, dense_.inputs, call.operand<const float>(0), inputs);
    for_units(dense_.units, [&](std::int64_t unit, std::int64_t units) {
      rows_to(dense_.inputs, units, dense_.units, kernel + unit, weights);
      const Bfloat16Pair* plane = weights;
      multiply_planes(PlaneProduct<Bfloat16Pair>{.taps = {&plane, 1},
                                                 .channels = pairs,
                                                 .channel_stride = units,
                                                 .weights = inputs,
                                                 .outputs = dense_.batch,
                                                 .weights_stride = 1,
                                                 .output_stride = pairs,
                                                 .positions = units,
                                                 .sums = y + unit,
                                                 .sums_stride = dense_.units});
    });
    if (dense_.bias) add_bias(dense_, call.operand<const float>(2), y);
  }

 private:
  static constexpr std::int64_t kUnits = 6 * kPositionLanes;

  template <class Use>
  static void for_units(std::int64_t units, const Use& use) {
    in_parts(units / kPositionLanes, kUnits / kPositionLanes,
             [&](std::int64_t first, std::int64_t count) {
               use(first * kPositionLanes, count * kPositionLanes);
             });
  }

  const DenseForward dense_;
  ScratchPlan plan_;
  const std::size_t inputs_, weights_;
};

// Samples are positions, and some rows of the kernel at a time are the weights. Element is float,
// or Bfloat16Pair of two units.
template <class Element>
class InputKernel final : public Kernel {
 public:
  explicit InputKernel(const DenseBackwardInput& dense)
      : dense_(dense),
        depth_(dense.units / kUnitsEach),
        samples_((dense.batch + kPositionLanes - 1) / kPositionLanes * kPositionLanes),
        derivatives_(plan_.add_array<Element>(depth_ * samples_)),
        weights_(plan_.add_array<Element>(kInPairs ? kRows * depth_ : 0)),
        sums_(plan_.add_floats(kRows * samples_)) {}

  std::size_t scratch_bytes() const override { return plan_.bytes(); }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const auto* kernel = call.operand<const float>(1);
    auto* dx = call.operand<float>(2);
    auto* sums = scratch_at<float>(scratch, sums_);
    const Element* planes = arrange(call.operand<const float>(0), scratch);
    in_parts(dense_.inputs, kRows, [&](std::int64_t row, std::int64_t rows) {
      multiply(PlaneProduct<Element>{.taps = {&planes, 1},
                                     .channels = depth_,
                                     .channel_stride = samples_,
                                     .weights = weights_of(kernel, row, rows, scratch),
                                     .outputs = rows,
                                     .weights_stride = 1,
                                     .output_stride = depth_,
                                     .positions = samples_,
                                     .sums = sums,
                                     .sums_stride = samples_});
      for (std::int64_t n = 0; n < dense_.batch; ++n) {
        float* to = dx + n * dense_.inputs + row;
        for (std::int64_t i = 0; i < rows; ++i) to[i] = sums[i * samples_ + n];
      }
    });
  }

 private:
  static constexpr bool kInPairs = std::is_same_v<Element, Bfloat16Pair>;
  static constexpr std::int64_t kUnitsEach = kInPairs ? 2 : 1;
  static constexpr std::int64_t kRows = 8;

  static void multiply(const PlaneProduct<Element>& product) {
    if constexpr (kInPairs) {
      multiply_planes(product);
    } else {
      multiply_planes_unfused(product);
    }
  }

  // [unit, or pair of units][sample]; samples that are not there are zero.
  const Element* arrange(const float* dy, std::byte* scratch) const {
    auto* to = scratch_at<Element>(scratch, derivatives_);
    for (std::int64_t u = 0; u < dense_.units; u += kUnitsEach, to += samples_) {
      for (std::int64_t n = 0; n < dense_.batch; ++n) {
        const float* from = dy + n * dense_.units + u;
        if constexpr (kInPairs) {
          to[n] = {to_bfloat16(from[0]), to_bfloat16(from[1])};
        } else {
          to[n] = *from;
        }
      }
      std::fill(to + dense_.batch, to + samples_, Element{});
    }
    return scratch_at<Element>(scratch, derivatives_);
  }

  // [row][unit, or pair of units].
  const Element* weights_of(const float* kernel, std::int64_t row, std::int64_t rows,
                            std::byte* scratch) const {
    const float* first = kernel + row * dense_.units;
    if constexpr (kInPairs) {
      auto* weights = scratch_at<Bfloat16Pair>(scratch, weights_);
      columns_to_pairs(rows, dense_.units, first, weights);
      return weights;
    } else {
      return first;
    }
  }

  const DenseBackwardInput dense_;
  const std::int64_t depth_, samples_;
  ScratchPlan plan_;
  const std::size_t derivatives_, weights_, sums_;
};

class PairsParameterKernel final : public Kernel {
 public:
  explicit PairsParameterKernel(const DenseBackwardParameters& dense)
      : dense_(dense),
        inputs_(plan_.add_array<Bfloat16Pair>(pairs_of(dense.batch) * dense.inputs)),
        derivatives_(plan_.add_array<Bfloat16Pair>(pairs_of(dense.batch) * dense.units)) {}

  std::size_t scratch_bytes() const override { return plan_.bytes(); }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const auto* dy = call.operand<const float>(1);
    auto* inputs = scratch_at<Bfloat16Pair>(scratch, inputs_);
    auto* derivatives = scratch_at<Bfloat16Pair>(scratch, derivatives_);
    rows_to(dense_.batch, dense_.inputs, dense_.inputs, call.operand<const float>(0), inputs);
    rows_to(dense_.batch, dense_.units, dense_.units, dy, derivatives);
    const Bfloat16Pair* planes = derivatives;
    multiply_planes(PlaneProduct<Bfloat16Pair>{.taps = {&planes, 1},
                                               .channels = pairs_of(dense_.batch),
                                               .channel_stride = dense_.units,
                                               .weights = inputs,
                                               .outputs = dense_.inputs,
                                               .weights_stride = dense_.inputs,
                                               .positions = dense_.units,
                                               .sums = call.operand<float>(2),
                                               .sums_stride = dense_.units});
    if (dense_.bias) sum_bias(dense_, dy, call.operand<float>(3));
  }

 private:
  const DenseBackwardParameters dense_;
  ScratchPlan plan_;
  const std::size_t inputs_, derivatives_;
};

bool in_vectors(std::int64_t units) { return plane_vectors_supported() && units >= kPositionLanes; }

}  // namespace

std::unique_ptr<Kernel> make_kernel(const DenseForward& dense) {
  if (in_vectors(dense.units)) return std::make_unique<ForwardKernel>(dense);
  return reference::make_kernel<float>(dense);
}

std::unique_ptr<Kernel> make_kernel(const DenseBackwardInput& dense) {
  if (in_vectors(dense.units)) return std::make_unique<InputKernel<float>>(dense);
  return reference::make_kernel<float>(dense);
}

std::unique_ptr<Kernel> make_kernel(const DenseBackwardParameters& dense) {
  if (in_vectors(dense.units)) return std::make_unique<ParameterKernel>(dense);
  return reference::make_kernel<float>(dense);
}

std::unique_ptr<Kernel> make_portable_kernel(const DenseForward& dense, Precision precision) {
  if (!dense_in_pairs(precision, dense.inputs, dense.units)) return make_kernel(dense);
  return std::make_unique<PairsForwardKernel>(dense);
}

std::unique_ptr<Kernel> make_portable_kernel(const DenseBackwardInput& dense, Precision precision) {
  if (!dense_in_pairs(precision, dense.inputs, dense.units)) return make_kernel(dense);
  return std::make_unique<InputKernel<Bfloat16Pair>>(dense);
}

std::unique_ptr<Kernel> make_portable_kernel(const DenseBackwardParameters& dense,
                                             Precision precision) {
  if (!dense_in_pairs(precision, dense.inputs, dense.units)) return make_kernel(dense);
  return std::make_unique<PairsParameterKernel>(dense);
}

}  // namespace troupe::model::cpu
