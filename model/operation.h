#pragma once

// The operations a Program is made of, as data. Each struct gives the sizes of one kernel call and,
// in its comment, the operands in order. An operand is a dense array of the backend's data type;
// "-> a, b" are written completely and never read before. All sizes are those of one micro-batch.
// dX is the derivative of the loss with respect to X.

#include <cstdint>
#include <string>
#include <variant>

#include "model/network.h"

namespace troupe::model {

// x (batch, inputs), kernel (inputs, units), bias (units) or null -> y (batch, units)
struct DenseForward {
  std::int64_t batch = 0, inputs = 0, units = 0;
  bool bias = true;
};
// dy, kernel -> dx
struct DenseBackwardInput {
  std::int64_t batch = 0, inputs = 0, units = 0;
};
// x, dy -> dkernel, dbias (null without bias)
struct DenseBackwardParameters {
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
  ConvolutionGeometry geometry;
  Activation activation;  // kLinear, kRelu or kLeakyRelu
};
// dy (of the convolution, before the activation), kernel -> dx
struct ConvolutionBackwardInput {
  ConvolutionGeometry geometry;
};
// x, dy -> dkernel, dbias (null without bias)
struct ConvolutionBackwardParameters {
  ConvolutionGeometry geometry;
};

// x (batch, in, channels) -> y (batch, in + 2 amount, channels)
struct PadForward {
  std::int64_t batch = 0, channels = 0;
  Extent in{}, amount{};
};
// dy -> dx
struct PadBackward {
  std::int64_t batch = 0, channels = 0;
  Extent in{}, amount{};
};
// x (batch, in, channels) -> y (batch, in x factor, channels)
struct UpsampleForward {
  std::int64_t batch = 0, channels = 0;
  Extent in{}, factor{};
};
// dy -> dx
struct UpsampleBackward {
  std::int64_t batch = 0, channels = 0;
  Extent in{}, factor{};
};
// x (batch, in, channels) -> y (batch, floor(in / size), channels)
struct AveragePoolForward {
  std::int64_t batch = 0, channels = 0;
  Extent in{}, size{};
};
// dy -> dx
struct AveragePoolBackward {
  std::int64_t batch = 0, channels = 0;
  Extent in{}, size{};
};

// x (rows, channels), gamma, beta -> y, mean, inverse_deviation, batch_mean, batch_variance
// mean and inverse_deviation = 1 / sqrt(biased variance + epsilon) are kept for the backward pass;
// batch_mean and batch_variance (unbiased, n / (n - 1) x biased; n = rows; n = 1 counts as biased)
// are the step's contribution to the moving statistics. Statistics are summed in double.
struct BatchNormTraining {
  std::int64_t rows = 0, channels = 0;
  double epsilon = 1e-6;
};
// x, gamma, beta, moving_mean, moving_variance -> y
struct BatchNormInference {
  std::int64_t rows = 0, channels = 0;
  double epsilon = 1e-6;
};
// x, dy, gamma, mean, inverse_deviation -> dx, dgamma, dbeta (the last two null when not wanted).
// The gradient flows through the batch's statistics too.
struct BatchNormBackward {
  std::int64_t rows = 0, channels = 0;
};

// x -> y. Element i is kept when uniform(word i of the position with this stream) >= rate.
struct DropoutForward {
  std::int64_t elements = 0;
  double rate = 0.0;
  std::uint32_t stream = 0;
};
// dy -> dx, with the same mask drawn again
struct DropoutBackward {
  std::int64_t elements = 0;
  double rate = 0.0;
  std::uint32_t stream = 0;
};

// x -> y
struct ActivationForward {
  std::int64_t elements = 0;
  Activation activation;
};
// y, dy -> dx. At y = 0 ReLU passes nothing and LeakyReLU passes slope x dy.
struct ActivationBackward {
  std::int64_t elements = 0;
  Activation activation;
};
// x -> y = max(x, 0)^exponent
struct PowerForward {
  std::int64_t elements = 0;
  double exponent = 1.0;
};
// x, dy -> dx = exponent x^(exponent - 1) dy, 0 where x <= 0
struct PowerBackward {
  std::int64_t elements = 0;
  double exponent = 1.0;
};
// x (batch, cells) -> y (batch); summed in double
struct SumForward {
  std::int64_t batch = 0, cells = 0;
};
// dy -> dx
struct SumBackward {
  std::int64_t batch = 0, cells = 0;
};
// x (batch, space) -> y (batch): incidence angle in rad. With cell centres i + 0.5 and x, y, z the
// axes: (xb, yb, zb) the energy-weighted mean of the event; per layer z the energy-weighted means
// x_z, y_z (0 in an empty layer); zproj = sqrt(max((x_z - xb)^2 + (z - zb)^2, 1e-7));
// m = (y_z - yb) / zproj with its sign flipped for z < zb; a_z = pi/2 - atan(m), 0 in an empty
// layer; angle = sum(a_z z mask_z) / sum(z mask_z) with mask_z = 1 where the layer has energy.
// An event without energy gives 100 and no gradient. Source: 3DGAN's ecal_angle.
struct AngleForward {
  std::int64_t batch = 0;
  Extent space{};
};
// x, dy -> dx
struct AngleBackward {
  std::int64_t batch = 0;
  Extent space{};
};
// x (batch, cells) -> y (batch, 8): cells in >0.05, (0.03,0.05], (0.02,0.03], (0.0125,0.02],
// (0.008,0.0125], (0.003,0.008], (0,0.003], == 0
struct BinsForward {
  std::int64_t batch = 0, cells = 0;
};
// from, into -> into += from (read and written)
struct Accumulate {
  std::int64_t elements = 0;
};

using Operation =
    std::variant<DenseForward, DenseBackwardInput, DenseBackwardParameters, ConvolutionForward,
                 ConvolutionBackwardInput, ConvolutionBackwardParameters, PadForward, PadBackward,
                 UpsampleForward, UpsampleBackward, AveragePoolForward, AveragePoolBackward,
                 BatchNormTraining, BatchNormInference, BatchNormBackward, DropoutForward,
                 DropoutBackward, ActivationForward, ActivationBackward, PowerForward,
                 PowerBackward, SumForward, SumBackward, AngleForward, AngleBackward, BinsForward,
                 Accumulate>;

// "convolution_forward", for traces and messages.
std::string operation_name(const Operation& operation);

}  // namespace troupe::model
