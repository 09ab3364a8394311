#pragma once

// The operations a Program is made of, as data. Each struct gives the sizes of one kernel call and,
// in its comment, the operands in order; kName is its name in traces and messages. An operand is a
// dense array of the backend's data type; "-> a, b" are written completely and never read before.
// All sizes are those of one micro-batch. dX is the derivative of the loss with respect to X.

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <variant>

#include "model/network.h"

namespace troupe::model {

// x (batch, inputs), kernel (inputs, units), bias (units) or null -> y (batch, units)
struct DenseForward {
  static constexpr const char* kName = "dense_forward";
  std::int64_t batch = 0, inputs = 0, units = 0;
  bool bias = true;
};
// dy, kernel -> dx
struct DenseBackwardInput {
  static constexpr const char* kName = "dense_backward_input";
  std::int64_t batch = 0, inputs = 0, units = 0;
};
// x, dy -> dkernel, dbias (null without bias)
struct DenseBackwardParameters {
  static constexpr const char* kName = "dense_backward_parameters";
  std::int64_t batch = 0, inputs = 0, units = 0;
  bool bias = true;
};

// Layers with stride or dilation, not both, are convolutions of phases (Phases).
//
// Cross-correlation with stride 1 and zero padding, as Keras, of an image of which each cell is
// repeated `upsample` times along each axis before it is padded:
// out = in x upsample + before + after - kernel + 1.
struct ConvolutionGeometry {
  std::int64_t batch = 0;
  Extent in{}, out{}, kernel{}, pad_before{}, pad_after{};
  Extent upsample{1, 1, 1};
  std::int64_t in_channels = 0, out_channels = 0;
  bool bias = true;
  // The channels `in` are those of so many phases along each axis. The first `whole_phases` have
  // all taps. Weights of the last tap of the others are zero, and nobody reads their derivatives.
  Extent phases{1, 1, 1}, whole_phases{1, 1, 1};
};
// x, kernel (kx, ky, kz, in, out), bias or null -> y = activation(conv(x) + bias)
struct ConvolutionForward {
  static constexpr const char* kName = "convolution_forward";
  ConvolutionGeometry geometry;
  Activation activation;  // kLinear, kRelu or kLeakyRelu
};
// dy (of the convolution, before the activation), kernel -> dx
struct ConvolutionBackwardInput {
  static constexpr const char* kName = "convolution_backward_input";
  ConvolutionGeometry geometry;
};
// x, dy -> dkernel, dbias (null without bias)
struct ConvolutionBackwardParameters {
  static constexpr const char* kName = "convolution_backward_parameters";
  ConvolutionGeometry geometry;
};

// A convolution in groups, or one: filter co of group co / (out / groups) sees the in / groups
// channels of its own group. out = (in + before + after - (kernel - 1) dilation - 1) / stride + 1.
struct GroupedGeometry {
  std::int64_t batch = 0;
  Extent in{}, out{}, kernel{}, pad_before{}, stride{1, 1, 1}, dilation{1, 1, 1};
  std::int64_t in_channels = 0, out_channels = 0, groups = 1;
  bool bias = true;
};
// x, kernel (kx, ky, kz, in / groups, out), bias or null -> y
struct GroupedConvolutionForward {
  static constexpr const char* kName = "grouped_convolution_forward";
  GroupedGeometry geometry;
};
// dy, kernel -> dx
struct GroupedConvolutionBackwardInput {
  static constexpr const char* kName = "grouped_convolution_backward_input";
  GroupedGeometry geometry;
};
// x, dy -> dkernel; summed in double
struct GroupedConvolutionBackwardParameters {
  static constexpr const char* kName = "grouped_convolution_backward_parameters";
  GroupedGeometry geometry;
};

// An image taken apart into phases. Cell m of phase r along an axis is cell stride x m + r - offset
// of the image, 0 outside it. Phases are numbered along x, y, z; they are channels of a cell, in
// front of the image's own, or `apart`: images of their own, one behind the other in each sample.
struct Phases {
  std::int64_t batch = 0, channels = 0;
  Extent space{}, cells{}, stride{1, 1, 1}, offset{};
  bool apart = false;
};
// x (batch, space, channels) -> y (batch, cells, stride, channels), apart (batch, stride, cells,
// channels)
struct SplitPhases {
  static constexpr const char* kName = "split_phases";
  Phases phases;
};
// y -> x, 0 in cells that no phase has; each of the two is the other one's derivative
struct JoinPhases {
  static constexpr const char* kName = "join_phases";
  Phases phases;
};

// bias (channels), y (rows, channels) -> y += bias (read and written)
struct AddBias {
  static constexpr const char* kName = "add_bias";
  std::int64_t rows = 0, channels = 0;
};
// dy (batch, rows, channels) -> dx (batch, channels): sums over rows, in double
struct SumRows {
  static constexpr const char* kName = "sum_rows";
  std::int64_t batch = 0, rows = 0, channels = 0;
};
// x (batch, channels) -> y (batch, rows, channels)
struct RepeatRows {
  static constexpr const char* kName = "repeat_rows";
  std::int64_t batch = 0, rows = 0, channels = 0;
};

// x (batch, in, channels) -> y (batch, padded(in, amount), channels)
struct PadForward {
  static constexpr const char* kName = "pad_forward";
  std::int64_t batch = 0, channels = 0;
  Extent in{};
  Margins amount{};
};
// dy -> dx
struct PadBackward {
  static constexpr const char* kName = "pad_backward";
  std::int64_t batch = 0, channels = 0;
  Extent in{};
  Margins amount{};
};
// x (batch, in, channels) -> y (batch, in x factor, channels)
struct UpsampleForward {
  static constexpr const char* kName = "upsample_forward";
  std::int64_t batch = 0, channels = 0;
  Extent in{}, factor{};
};
// dy -> dx
struct UpsampleBackward {
  static constexpr const char* kName = "upsample_backward";
  std::int64_t batch = 0, channels = 0;
  Extent in{}, factor{};
};
// Windows over an image. Cell k of window m along an axis is cell stride x m + k - pad_before of
// the image; cells outside it are left out, and every window has one inside. By default windows lie
// side by side, and cells that fill none are left out.
struct PoolGeometry {
  std::int64_t batch = 0, channels = 0;
  Extent in{}, size{1, 1, 1};
  Extent stride = size, pad_before{};
  Extent out{in[0] / size[0], in[1] / size[1], in[2] / size[2]};
};
// Whether the windows are whole and lie side by side, so that no cell is in two of them.
inline bool side_by_side(const PoolGeometry& g) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (g.stride[axis] != g.size[axis] || g.pad_before[axis] != 0) return false;
    if (g.out[axis] * g.size[axis] > g.in[axis]) return false;
  }
  return true;
}
// x (batch, in, channels) -> y (batch, out, channels)
struct AveragePoolForward {
  static constexpr const char* kName = "average_pool_forward";
  PoolGeometry geometry;
};
// dy -> dx: each cell sums its windows in ascending order
struct AveragePoolBackward {
  static constexpr const char* kName = "average_pool_backward";
  PoolGeometry geometry;
};

// x (batch, in, channels) -> y (batch, out, channels); NaN is the largest
struct MaxPoolForward {
  static constexpr const char* kName = "max_pool_forward";
  PoolGeometry geometry;
};
// x, dy -> dx: to the first of a window's largest cells, which sums its windows in ascending order
struct MaxPoolBackward {
  static constexpr const char* kName = "max_pool_backward";
  PoolGeometry geometry;
};

// x (rows, channels), gamma, beta -> y, mean, inverse_deviation, batch_mean, batch_variance
// mean and inverse_deviation = 1 / sqrt(biased variance + epsilon) are kept for the backward pass;
// batch_mean and batch_variance (unbiased, n / (n - 1) x biased; n = rows; n = 1 counts as biased)
// are the step's contribution to the moving statistics. Statistics are summed in double.
struct BatchNormTraining {
  static constexpr const char* kName = "batch_norm_training";
  std::int64_t rows = 0, channels = 0;
  double epsilon = 1e-6;
};
// x, gamma, beta, moving_mean, moving_variance -> y
struct BatchNormInference {
  static constexpr const char* kName = "batch_norm_inference";
  std::int64_t rows = 0, channels = 0;
  double epsilon = 1e-6;
};
// x, dy, gamma, mean, inverse_deviation -> dx, dgamma, dbeta (the last two null when not wanted).
// The gradient flows through the batch's statistics too.
struct BatchNormBackward {
  static constexpr const char* kName = "batch_norm_backward";
  std::int64_t rows = 0, channels = 0;
};

// x (samples, rows, channels), gamma, beta -> y, mean, inverse_deviation (samples, groups)
// Channels are normalised in groups of neighbours, over the rows of their sample. Sums run in
// double over the rows of each channel, then over the channels.
struct GroupNormForward {
  static constexpr const char* kName = "group_norm_forward";
  std::int64_t samples = 0, rows = 0, channels = 0, groups = 1;
  double epsilon = 1e-3;
};
// x, dy, gamma, mean, inverse_deviation -> dx, dgamma, dbeta (the last two null when not wanted)
struct GroupNormBackward {
  static constexpr const char* kName = "group_norm_backward";
  std::int64_t samples = 0, rows = 0, channels = 0, groups = 1;
};

// x -> y. Element i is kept when uniform(word i of the position with this stream) >= rate.
struct DropoutForward {
  static constexpr const char* kName = "dropout_forward";
  std::int64_t elements = 0;
  double rate = 0.0;
  std::uint32_t stream = 0;
};
// dy -> dx, with the same mask drawn again
struct DropoutBackward {
  static constexpr const char* kName = "dropout_backward";
  std::int64_t elements = 0;
  double rate = 0.0;
  std::uint32_t stream = 0;
};

// x -> y
struct ActivationForward {
  static constexpr const char* kName = "activation_forward";
  std::int64_t elements = 0;
  Activation activation;
};
// y, dy -> dx, or x, dy -> dx where the result does not tell the slope. At y = 0 ReLU passes
// nothing and LeakyReLU passes slope x dy.
inline bool needs_argument(ActivationKind kind) {
  return kind == ActivationKind::kGelu || kind == ActivationKind::kSilu;
}
struct ActivationBackward {
  static constexpr const char* kName = "activation_backward";
  std::int64_t elements = 0;
  Activation activation;
};
// x -> y = max(x, 0)^exponent
struct PowerForward {
  static constexpr const char* kName = "power_forward";
  std::int64_t elements = 0;
  double exponent = 1.0;
};
// x, dy -> dx = exponent x^(exponent - 1) dy, 0 where x <= 0
struct PowerBackward {
  static constexpr const char* kName = "power_backward";
  std::int64_t elements = 0;
  double exponent = 1.0;
};
// x (rows, channels) -> y = e^x / (sum of e^x over the row)
struct SoftmaxForward {
  static constexpr const char* kName = "softmax_forward";
  std::int64_t rows = 0, channels = 0;
};
// y, dy -> dx
struct SoftmaxBackward {
  static constexpr const char* kName = "softmax_backward";
  std::int64_t rows = 0, channels = 0;
};
// x (batch, cells, 3, heads, width) -> y (batch, cells, heads, width): of queries, keys and values
// y_i = sum_j softmax_j(query_i . key_j / sqrt(width)) value_j
struct AttentionForward {
  static constexpr const char* kName = "attention_forward";
  std::int64_t batch = 0, cells = 0, heads = 1, width = 0;
};
// x, dy -> dx
struct AttentionBackward {
  static constexpr const char* kName = "attention_backward";
  std::int64_t batch = 0, cells = 0, heads = 1, width = 0;
};
// x (batch): numbers of classes, kernel (classes, units) -> y (batch, units): rows of the kernel,
// NaN for any other number
struct EmbeddingForward {
  static constexpr const char* kName = "embedding_forward";
  std::int64_t batch = 0, classes = 0, units = 0;
};
// x, dy -> dkernel
struct EmbeddingBackward {
  static constexpr const char* kName = "embedding_backward";
  std::int64_t batch = 0, classes = 0, units = 0;
};
// a, b -> y = a b
struct Product {
  static constexpr const char* kName = "product";
  std::int64_t elements = 0;
};
// x (batch, in, channels) -> y, of which axis i (x, y, z, channels) is axis order[i] of x
struct PermuteAxes {
  static constexpr const char* kName = "permute_axes";
  std::int64_t batch = 0;
  std::array<std::int64_t, 4> in{1, 1, 1, 1};
  std::array<int, 4> order{0, 1, 2, 3};
};
// Copies `count` elements `times` over: from -> to. `begins`: nothing was in `to` before, and what
// is not copied is no number yet; else `to` is read and written, and other elements stay as they
// are.
struct CopyParts {
  static constexpr const char* kName = "copy_parts";
  std::int64_t times = 0, count = 0;
  std::int64_t from_offset = 0, from_step = 0, from_size = 0;  // elements; of all of `from`
  std::int64_t to_offset = 0, to_step = 0, to_size = 0;
  bool begins = true;
};
// x (batch, space) -> y (batch): incidence angle in rad. With cell centres i + 0.5 and x, y, z the
// axes: (xb, yb, zb) the energy-weighted mean of the event; per layer z the energy-weighted means
// x_z, y_z (0 in an empty layer); zproj = sqrt(max((x_z - xb)^2 + (z - zb)^2, 1e-7));
// m = (y_z - yb) / zproj with its sign flipped for z < zb; a_z = pi/2 - atan(m), 0 in an empty
// layer; angle = sum(a_z z mask_z) / sum(z mask_z) with mask_z = 1 where the layer has energy.
// An event without energy gives 100 and no gradient. Source: 3DGAN's ecal_angle.
struct AngleForward {
  static constexpr const char* kName = "angle_forward";
  std::int64_t batch = 0;
  Extent space{};
};
// x, dy -> dx
struct AngleBackward {
  static constexpr const char* kName = "angle_backward";
  std::int64_t batch = 0;
  Extent space{};
};
// x (batch, cells) -> y (batch, 8): cells in >0.05, (0.03,0.05], (0.02,0.03], (0.0125,0.02],
// (0.008,0.0125], (0.003,0.008], (0,0.003], == 0
struct BinsForward {
  static constexpr const char* kName = "bins_forward";
  std::int64_t batch = 0, cells = 0;
};
// from, into -> into += from (read and written)
struct Accumulate {
  static constexpr const char* kName = "accumulate";
  std::int64_t elements = 0;
};
// -> zeros: gradients nothing flows to
struct ZeroFill {
  static constexpr const char* kName = "zero_fill";
  std::int64_t elements = 0;
};

// With t the target and p the output, of one element:
// kBinaryCrossentropy -t log p - (1 - t) log(1 - p) with p clipped to [1e-7, 1 - 1e-7];
// kMeanAbsoluteError |t - p|; kMeanAbsolutePercentageError 100 |t - p| / max(|t|, 1e-7);
// kMeanSquaredError (t - p)^2; kHuber (t - p)^2 / 2 up to |t - p| = 1, |t - p| - 1 / 2 beyond;
// kLogisticCrossentropy is kBinaryCrossentropy of sigmoid(p), without a clip; with s = 2 t - 1, the
// sign of a label, kHinge max(0, 1 - s p) (Lim and Ye, arXiv:1705.02894) and kWasserstein -s p
// (Arjovsky et al., arXiv:1701.07875). kGradientPenalty is of a Gan alone (model/gan.h), and
// kClassCrossentropy of ClassCrossentropy.
enum class LossKind : std::uint8_t {
  kBinaryCrossentropy,
  kMeanAbsoluteError,
  kMeanAbsolutePercentageError,
  kMeanSquaredError,
  kHuber,
  kLogisticCrossentropy,
  kHinge,
  kWasserstein,
  kGradientPenalty,
  kClassCrossentropy,
};
// p, t (elements) -> value (1), gradient (elements)
// value is the mean of the losses, gradient = weight x d value / d p. Everything is computed in
// double. Where the clip, the hinge or |t - p| = 0 has no derivative, it is 0; NaN stays NaN. A
// target below least_target counts as that.
struct MeanLoss {
  static constexpr const char* kName = "mean_loss";
  std::int64_t elements = 0;
  LossKind kind = LossKind::kBinaryCrossentropy;
  double weight = 1.0;
  double least_target = -std::numeric_limits<double>::infinity();
};
// p (batch, classes), t (batch) -> value (1), gradient (batch, classes)
// value is the mean of log(sum exp p) - p[t], gradient = weight x d value / d p. t is the number of
// a class; any other number makes both NaN. Everything is computed in double.
struct ClassCrossentropy {
  static constexpr const char* kName = "class_crossentropy";
  std::int64_t batch = 0, classes = 0;
  double weight = 1.0;
};
// x (batch, cells) -> number of events (1) all of whose cells are 0
struct CountEmpty {
  static constexpr const char* kName = "count_empty";
  std::int64_t batch = 0, cells = 0;
};
// a, b (batch, cells), u (batch) -> a + u (b - a)
struct MixEvents {
  static constexpr const char* kName = "mix_events";
  std::int64_t batch = 0, cells = 0;
};
// x, dx (batch, cells) -> slope (batch), above, below (batch, cells), factors (2, batch)
// Points above and below x on the line along dx: slope = |dx|, above = x + e dx / |dx| with e =
// 2^-10 max(1, |x|), below = x - e dx / |dx|, factors = 1 / 2e and -1 / 2e. |.| is the Euclidean
// norm of an event. Everything is computed in double. Where dx is 0 the points are x.
struct SlopeProbes {
  static constexpr const char* kName = "slope_probes";
  std::int64_t batch = 0, cells = 0;
};

using Operation = std::variant<
    DenseForward, DenseBackwardInput, DenseBackwardParameters, ConvolutionForward,
    ConvolutionBackwardInput, ConvolutionBackwardParameters, GroupedConvolutionForward,
    GroupedConvolutionBackwardInput, GroupedConvolutionBackwardParameters, SplitPhases, JoinPhases,
    AddBias, SumRows, RepeatRows, PadForward, PadBackward, UpsampleForward, UpsampleBackward,
    AveragePoolForward, AveragePoolBackward, MaxPoolForward, MaxPoolBackward, BatchNormTraining,
    BatchNormInference, BatchNormBackward, GroupNormForward, GroupNormBackward, DropoutForward,
    DropoutBackward, ActivationForward, ActivationBackward, SoftmaxForward, SoftmaxBackward,
    AttentionForward, AttentionBackward, EmbeddingForward, EmbeddingBackward, Product, PermuteAxes,
    CopyParts, PowerForward, PowerBackward, AngleForward, AngleBackward, BinsForward, Accumulate,
    ZeroFill, MeanLoss, ClassCrossentropy, CountEmpty, MixEvents, SlopeProbes>;

// As many operands as any Operation has.
inline constexpr std::size_t kMostOperands = 8;

template <class Op>
inline constexpr bool kIsActivation =
    std::is_same_v<Op, ActivationForward> || std::is_same_v<Op, ActivationBackward>;

// True if each element of the result, the last operand, depends on the same element of the others
// alone. The result may then stand where the operand before it stands.
inline bool is_elementwise(const Operation& operation) {
  return std::visit(
      []<class Op>(const Op&) {
        return kIsActivation<Op> || std::is_same_v<Op, DropoutForward> ||
               std::is_same_v<Op, DropoutBackward>;
      },
      operation);
}

inline std::string operation_name(const Operation& operation) {
  return std::visit([](const auto& each) { return std::string(each.kName); }, operation);
}

}  // namespace troupe::model
