#pragma once

// The operations a Program is made of, as data. Each struct gives the sizes of one kernel call and,
// in its comment, the operands in order; kName is its name in traces and messages. An operand is a
// dense array of the backend's data type; "-> a, b" are written completely and never read before.
// All sizes are those of one micro-batch. dX is the derivative of the loss with respect to X.

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

// Cross-correlation with stride 1 and zero padding, as Keras, of an image of which each cell is
// repeated `upsample` times along each axis before it is padded:
// out = in x upsample + before + after - kernel + 1.
struct ConvolutionGeometry {
  std::int64_t batch = 0;
  Extent in{}, out{}, kernel{}, pad_before{}, pad_after{};
  Extent upsample{1, 1, 1};
  std::int64_t in_channels = 0, out_channels = 0;
  bool bias = true;
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

// x (batch, in, channels) -> y (batch, in + 2 amount, channels)
struct PadForward {
  static constexpr const char* kName = "pad_forward";
  std::int64_t batch = 0, channels = 0;
  Extent in{}, amount{};
};
// dy -> dx
struct PadBackward {
  static constexpr const char* kName = "pad_backward";
  std::int64_t batch = 0, channels = 0;
  Extent in{}, amount{};
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
// x (batch, in, channels) -> y (batch, floor(in / size), channels)
struct AveragePoolForward {
  static constexpr const char* kName = "average_pool_forward";
  std::int64_t batch = 0, channels = 0;
  Extent in{}, size{};
};
// dy -> dx
struct AveragePoolBackward {
  static constexpr const char* kName = "average_pool_backward";
  std::int64_t batch = 0, channels = 0;
  Extent in{}, size{};
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
// y, dy -> dx. At y = 0 ReLU passes nothing and LeakyReLU passes slope x dy.
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
// x (batch, cells) -> y (batch); summed in double
struct SumForward {
  static constexpr const char* kName = "sum_forward";
  std::int64_t batch = 0, cells = 0;
};
// dy -> dx
struct SumBackward {
  static constexpr const char* kName = "sum_backward";
  std::int64_t batch = 0, cells = 0;
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
// kMeanAbsoluteError |t - p|; kMeanAbsolutePercentageError 100 |t - p| / max(|t|, 1e-7).
enum class LossKind : std::uint8_t {
  kBinaryCrossentropy,
  kMeanAbsoluteError,
  kMeanAbsolutePercentageError,
};
// p, t (elements) -> value (1), gradient (elements)
// value is the mean of the losses, gradient = weight x d value / d p. Everything is computed in
// double. Where the clip or |t - p| = 0 has no derivative, it is 0; NaN stays NaN. A target below
// least_target counts as that.
struct MeanLoss {
  static constexpr const char* kName = "mean_loss";
  std::int64_t elements = 0;
  LossKind kind = LossKind::kBinaryCrossentropy;
  double weight = 1.0;
  double least_target = -std::numeric_limits<double>::infinity();
};
// x (batch, cells) -> number of events (1) all of whose cells are 0
struct CountEmpty {
  static constexpr const char* kName = "count_empty";
  std::int64_t batch = 0, cells = 0;
};

using Operation =
    std::variant<DenseForward, DenseBackwardInput, DenseBackwardParameters, ConvolutionForward,
                 ConvolutionBackwardInput, ConvolutionBackwardParameters, PadForward, PadBackward,
                 UpsampleForward, UpsampleBackward, AveragePoolForward, AveragePoolBackward,
                 BatchNormTraining, BatchNormInference, BatchNormBackward, DropoutForward,
                 DropoutBackward, ActivationForward, ActivationBackward, PowerForward,
                 PowerBackward, SumForward, SumBackward, AngleForward, AngleBackward, BinsForward,
                 Accumulate, ZeroFill, MeanLoss, CountEmpty>;

// As many operands as any Operation has.
inline constexpr std::size_t kMostOperands = 8;

inline std::string operation_name(const Operation& operation) {
  return std::visit([](const auto& each) { return std::string(each.kName); }, operation);
}

}  // namespace troupe::model
