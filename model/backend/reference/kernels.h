#pragma once

// Plain loops for every operation, for the reference backend and for the operations that another
// backend on the host leaves to it. The operation's comment lists the operands. T is float or
// double; the sources make both.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "model/backend.h"
#include "model/backend/kernel_call.h"
#include "model/operation.h"
#include "runtime/base/random.h"

namespace troupe::model::reference {

// Never null: every operation is supported.
template <class T>
std::unique_ptr<Kernel> make_kernel(const Operation& operation);

#define TROUPE_DECLARE_RUN(Operation) \
  template <class T>                  \
  void run(const Operation&, const KernelCall& call)
#define TROUPE_INSTANTIATE_RUN(Operation)                        \
  template void run<float>(const Operation&, const KernelCall&); \
  template void run<double>(const Operation&, const KernelCall&)

// Bytes of scratch memory with elements of so many bytes; none for operations without a function of
// their own below.
template <class Op>
std::size_t scratch_bytes(const Op&, std::size_t) {
  return 0;
}

// Matrix products of dense layers. Each element is accumulated in T: forward over the inputs in
// ascending order with the bias added last, dx over the units, dkernel and dbias over the batch.
TROUPE_DECLARE_RUN(DenseForward);
TROUPE_DECLARE_RUN(DenseBackwardInput);
TROUPE_DECLARE_RUN(DenseBackwardParameters);

// Convolution as direct loops over cells inside the image, upsampled first where the geometry says
// so: padded cells are skipped, not multiplied by zero. Order of accumulation for one element, in
// T:
//   y        over kx, ky, kz, input channel, each ascending; then the bias; then the activation
//   dx       the same loops over dy with the kernel mirrored in space and its channels swapped
//   dkernel  over y and z of one x plane of one sample in T, over samples and planes in double
//   dbias    over all cells in double
TROUPE_DECLARE_RUN(ConvolutionForward);
TROUPE_DECLARE_RUN(ConvolutionBackwardInput);
TROUPE_DECLARE_RUN(ConvolutionBackwardParameters);
// The upsampled image.
std::size_t scratch_bytes(const ConvolutionForward& convolution, std::size_t element);
// Its derivative and the mirrored kernel.
std::size_t scratch_bytes(const ConvolutionBackwardInput& convolution, std::size_t element);
// One plane's and the total gradient of one kernel position, and the upsampled image.
std::size_t scratch_bytes(const ConvolutionBackwardParameters& convolution, std::size_t element);
// The geometry of the convolution that maps dy to dx (without upsampling), and its kernel: mirrored
// in space, input and output channels swapped.
ConvolutionGeometry mirrored(const ConvolutionGeometry& geometry);
template <class T>
void mirror_kernel(const ConvolutionGeometry& geometry, const T* kernel, T* out);

// Convolution in groups, as loops over the cells that a window touches. y and dx are summed in T
// over taps in ascending order and then over channels, the bias last; dkernel in double
// over samples and cells.
TROUPE_DECLARE_RUN(GroupedConvolutionForward);
TROUPE_DECLARE_RUN(GroupedConvolutionBackwardInput);
TROUPE_DECLARE_RUN(GroupedConvolutionBackwardParameters);
// The gradient.
inline std::size_t scratch_bytes(const GroupedConvolutionBackwardParameters& convolution,
                                 std::size_t) {
  const GroupedGeometry& g = convolution.geometry;
  const std::int64_t tap = g.in_channels / g.groups * g.out_channels;
  return static_cast<std::size_t>(g.kernel[0] * g.kernel[1] * g.kernel[2] * tap) * sizeof(double);
}

// Phases, parts and axes are moved; nothing is computed.
TROUPE_DECLARE_RUN(SplitPhases);
TROUPE_DECLARE_RUN(JoinPhases);
TROUPE_DECLARE_RUN(PermuteAxes);
TROUPE_DECLARE_RUN(CopyParts);
TROUPE_DECLARE_RUN(RepeatRows);
TROUPE_DECLARE_RUN(AddBias);
TROUPE_DECLARE_RUN(SumRows);
inline std::size_t scratch_bytes(const SumRows& sum, std::size_t) {
  return static_cast<std::size_t>(sum.channels) * sizeof(double);
}

// Operations that move cells: zero padding, nearest-neighbour upsampling, average pooling. A window
// is summed in T over x, y, z, each ascending.
TROUPE_DECLARE_RUN(PadForward);
TROUPE_DECLARE_RUN(PadBackward);
TROUPE_DECLARE_RUN(UpsampleForward);
TROUPE_DECLARE_RUN(UpsampleBackward);
TROUPE_DECLARE_RUN(AveragePoolForward);
TROUPE_DECLARE_RUN(AveragePoolBackward);
// Windows are searched in the same order.
TROUPE_DECLARE_RUN(MaxPoolForward);
TROUPE_DECLARE_RUN(MaxPoolBackward);
// The cells along an axis that window m of a pool has inside the image.
struct CellRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
inline CellRange cells_of_window(const PoolGeometry& g, std::size_t axis, std::int64_t m) {
  const std::int64_t first = m * g.stride[axis] - g.pad_before[axis];
  return {std::max<std::int64_t>(first, 0), std::min(first + g.size[axis], g.in[axis])};
}

// Batch normalisation over the rows of a (rows, channels) array. Sums over rows run in ascending
// order in double: first the mean, then the squares of the deviations from it.
// y = (x - mean) scale + beta with scale = inverse_deviation x gamma, in T.
// dx = scale (dy - dbeta / n - xhat dgamma / n), xhat = (x - mean) inverse_deviation.
TROUPE_DECLARE_RUN(BatchNormTraining);
TROUPE_DECLARE_RUN(BatchNormInference);
TROUPE_DECLARE_RUN(BatchNormBackward);
// Two sums per channel.
inline std::size_t scratch_bytes(const BatchNormTraining& norm, std::size_t) {
  return static_cast<std::size_t>(norm.channels) * 2 * sizeof(double);
}
inline std::size_t scratch_bytes(const BatchNormBackward& norm, std::size_t) {
  return static_cast<std::size_t>(norm.channels) * 2 * sizeof(double);
}

// Normalisation of single samples, in groups of channels. y and dx as batch norm has them.
TROUPE_DECLARE_RUN(GroupNormForward);
TROUPE_DECLARE_RUN(GroupNormBackward);
// A sum per channel, and a mean per group.
inline std::size_t scratch_bytes(const GroupNormForward& norm, std::size_t) {
  return static_cast<std::size_t>(norm.channels + norm.groups) * sizeof(double);
}
// Two sums per channel of a sample, two of all samples, and two per group.
inline std::size_t scratch_bytes(const GroupNormBackward& norm, std::size_t) {
  return static_cast<std::size_t>(4 * norm.channels + 2 * norm.groups) * sizeof(double);
}

// Dropout draws its mask from the position in the run (runtime/base/random.h), anew in the backward
// pass, so that it need not be stored. A kept element is multiplied by 1 / (1 - rate).
TROUPE_DECLARE_RUN(DropoutForward);
TROUPE_DECLARE_RUN(DropoutBackward);
// Elements first, first + 1, ... of a dropout over `elements`. `position` is that of the layer's
// own stream. from may be to.
template <class T>
void drop(const T* from, T* to, std::int64_t first, std::int64_t elements, double rate,
          const runtime::RandomPosition& position);

// NaN stays NaN in every activation, so that divergence is seen. sigmoid and tanh go through
// runtime/base/math.h in double.
TROUPE_DECLARE_RUN(ActivationForward);
TROUPE_DECLARE_RUN(ActivationBackward);
// y = activation(x); y may be x.
template <class T>
void activate(const Activation& activation, const T* x, T* y, std::int64_t elements);

TROUPE_DECLARE_RUN(Product);

// The largest of the numbers; NaN where there is one.
template <class T>
T largest_of(const T* values, std::int64_t count) {
  T largest = values[0];
  for (std::int64_t i = 1; i < count; ++i) {
    if (largest == largest && !(values[i] <= largest)) largest = values[i];
  }
  return largest;
}
// Exponentials through runtime/base/math.h, of the differences from the largest number; sums in
// double.
TROUPE_DECLARE_RUN(SoftmaxForward);
TROUPE_DECLARE_RUN(SoftmaxBackward);
TROUPE_DECLARE_RUN(AttentionForward);
TROUPE_DECLARE_RUN(AttentionBackward);
// The weights of one query.
inline std::size_t scratch_bytes(const AttentionForward& attention, std::size_t) {
  return static_cast<std::size_t>(attention.cells) * sizeof(double);
}
// Weights and their derivatives, of all queries of a head.
inline std::size_t scratch_bytes(const AttentionBackward& attention, std::size_t) {
  return static_cast<std::size_t>(attention.cells * attention.cells) * 2 * sizeof(double);
}

// Sums over the events of a class in double.
TROUPE_DECLARE_RUN(EmbeddingForward);
TROUPE_DECLARE_RUN(EmbeddingBackward);
// The sums of a class.
inline std::size_t scratch_bytes(const EmbeddingBackward& embedding, std::size_t) {
  return static_cast<std::size_t>(embedding.units) * sizeof(double);
}

// x^p through runtime/base/math.h in double. Elements that are 0, most of a calorimeter image, cost
// a comparison; NaN stays NaN.
TROUPE_DECLARE_RUN(PowerForward);
TROUPE_DECLARE_RUN(PowerBackward);

// The parameter-free outputs of the discriminators: incidence angle and bin counts. Both compute
// in double for every T; cells are visited in memory order.
// A layer counts as empty when its sum is exactly 0, an event likewise. For the gradient the sign
// of m, the clip of zproj and the mask are constants.
TROUPE_DECLARE_RUN(AngleForward);
TROUPE_DECLARE_RUN(AngleBackward);
// Sums and derivatives per layer z.
inline constexpr int kAngleArrays = 5;
inline std::size_t scratch_bytes(const AngleForward& angle, std::size_t) {
  return static_cast<std::size_t>(angle.space[2]) * kAngleArrays * sizeof(double);
}
inline std::size_t scratch_bytes(const AngleBackward& angle, std::size_t) {
  return static_cast<std::size_t>(angle.space[2]) * kAngleArrays * sizeof(double);
}
// Edges are compared as numbers of type T. Negative cells and NaN are counted nowhere.
TROUPE_DECLARE_RUN(BinsForward);

// Adds gradients that meet where one layer's output is read by several.
TROUPE_DECLARE_RUN(Accumulate);
TROUPE_DECLARE_RUN(ZeroFill);

// Elements and events in memory order.
TROUPE_DECLARE_RUN(MeanLoss);
TROUPE_DECLARE_RUN(ClassCrossentropy);
TROUPE_DECLARE_RUN(CountEmpty);
TROUPE_DECLARE_RUN(MixEvents);
TROUPE_DECLARE_RUN(SlopeProbes);

}  // namespace troupe::model::reference
