#include <algorithm>
#include <array>
#include <utility>

#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

Extent random_extent(Draw& draw, std::int64_t first, std::int64_t last) {
  return {draw.between(first, last), draw.between(first, last), draw.between(first, last)};
}

Activation random_activation(Draw& draw, int kinds) {
  return {static_cast<ActivationKind>(draw.between(0, kinds - 1)), 0.3};
}

}  // namespace

ConvolutionGeometry with_output(ConvolutionGeometry g) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    g.out[axis] =
        g.in[axis] * g.upsample[axis] + g.pad_before[axis] + g.pad_after[axis] - g.kernel[axis] + 1;
  }
  return g;
}

ConvolutionGeometry random_geometry(Draw& draw) {
  ConvolutionGeometry g;
  g.batch = draw.between(1, 3);
  g.in = random_extent(draw, 4, 9);
  g.kernel = random_extent(draw, 1, 6);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    g.kernel[axis] = std::min(g.kernel[axis], g.in[axis]);
    g.pad_before[axis] = draw.between(0, g.kernel[axis] - 1);
    g.pad_after[axis] = draw.between(0, g.kernel[axis] - 1);
    // Now and then outputs that see nothing but padding.
    if (draw.between(0, 9) == 0) g.pad_before[axis] += g.kernel[axis];
    if (draw.between(0, 9) == 0) g.pad_after[axis] += g.kernel[axis];
  }
  // One in six is an image of spatial rank 2 or 1.
  const std::int64_t flat = draw.between(0, 11);
  for (std::size_t axis = flat == 0 ? 1 : 2; flat <= 1 && axis < 3; ++axis) {
    g.in[axis] = g.kernel[axis] = 1;
    g.pad_before[axis] = g.pad_after[axis] = 0;
  }
  constexpr std::array<std::int64_t, 8> kChannels{1, 2, 3, 6, 8, 16, 19, 32};
  g.in_channels = kChannels[static_cast<std::size_t>(draw.between(0, 7))];
  g.out_channels = kChannels[static_cast<std::size_t>(draw.between(0, 7))];
  g.bias = draw.between(0, 1) == 1;
  return with_output(g);
}

ConvolutionGeometry random_upsampled_geometry(Draw& draw) {
  ConvolutionGeometry g = random_geometry(draw);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    g.in[axis] = (g.in[axis] + 1) / 2;
    const bool flat = g.in[axis] == 1;  // as it was: others have two cells or more
    // Enough cells for the kernel.
    const std::int64_t least = (g.kernel[axis] + g.in[axis] - 1) / g.in[axis];
    g.upsample[axis] = flat ? 1 : draw.between(least, least + 2);
  }
  return with_output(g);
}

GroupedGeometry random_grouped_geometry(Draw& draw) {
  GroupedGeometry g;
  g.batch = draw.between(1, 3);
  g.in = random_extent(draw, 4, 7);
  g.groups = draw.between(1, 3);
  g.in_channels = g.groups * draw.between(1, 3);
  g.out_channels = g.groups * draw.between(1, 3);
  g.bias = draw.between(0, 1) == 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    g.kernel[axis] = draw.between(1, 3);
    g.stride[axis] = draw.between(1, 3);
    g.dilation[axis] = draw.between(1, 2);
    g.pad_before[axis] = draw.between(0, 2);
    const std::int64_t window = (g.kernel[axis] - 1) * g.dilation[axis] + 1;
    const std::int64_t cells = g.in[axis] + g.pad_before[axis] + draw.between(0, 2);
    g.out[axis] = (std::max(cells, window) - window) / g.stride[axis] + 1;
  }
  return g;
}

Phases random_phases(Draw& draw) {
  return {draw.between(1, 3),        draw.between(1, 5),        random_extent(draw, 1, 7),
          random_extent(draw, 1, 4), random_extent(draw, 1, 3), random_extent(draw, 0, 2),
          draw.between(0, 1) == 1};
}

PoolGeometry random_pool(Draw& draw) {
  constexpr std::array<std::int64_t, 6> kChannels{1, 2, 3, 8, 13, 16};
  const std::int64_t batch = draw.between(1, 3);
  const std::int64_t channels = kChannels[static_cast<std::size_t>(draw.between(0, 5))];
  const Extent in = random_extent(draw, 2, 7);
  Extent size = random_extent(draw, 1, 4);
  if (draw.between(0, 2) == 0) {
    for (std::size_t axis = 0; axis < 3; ++axis) size[axis] = std::min(size[axis], in[axis]);
    return {batch, channels, in, size};
  }
  PoolGeometry g{batch, channels, in, size, random_extent(draw, 1, 4)};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    g.pad_before[axis] = draw.between(0, size[axis] - 1);
    g.out[axis] = draw.between(1, (in[axis] + g.pad_before[axis] - 1) / g.stride[axis] + 1);
  }
  return g;
}

namespace {

// Parts of rows, as concatenation and slices copy them.
CopyParts random_parts(Draw& draw) {
  const std::int64_t times = draw.between(1, 9), count = draw.between(1, 20);
  const std::int64_t from = count + draw.between(0, 9), to = count + draw.between(0, 9);
  return {.times = times,
          .count = count,
          .from_offset = draw.between(0, from - count),
          .from_step = from,
          .from_size = times * from,
          .to_offset = draw.between(0, to - count),
          .to_step = to,
          .to_size = times * to,
          .begins = false};
}

PermuteAxes random_permutation(Draw& draw) {
  PermuteAxes permute{.batch = draw.between(1, 3)};
  for (std::size_t i = 0; i < 4; ++i) {
    permute.in[i] = draw.between(1, 6);
    std::swap(permute.order[i],
              permute.order[static_cast<std::size_t>(draw.between(0, static_cast<int>(i)))]);
  }
  return permute;
}

// Those of layers besides the 3DGANs'.
std::vector<Operation> random_layer_operations(Draw& draw) {
  const GroupedGeometry grouped = random_grouped_geometry(draw);
  const Phases phases = random_phases(draw);
  const std::int64_t groups = draw.between(1, 3), width = draw.between(1, 4);
  const std::int64_t few_rows = draw.between(1, 20), classes = draw.between(5, 7);
  const std::int64_t batch = draw.between(1, 4), channels = draw.between(1, 9);
  const std::int64_t units = draw.between(1, 70), rows = draw.between(1, 200);
  const std::int64_t elements = draw.between(1, 3000);
  const PoolGeometry pool = random_pool(draw);
  return {GroupedConvolutionForward{grouped},
          GroupedConvolutionBackwardInput{grouped},
          GroupedConvolutionBackwardParameters{grouped},
          SplitPhases{phases},
          JoinPhases{phases},
          AddBias{rows, channels},
          SumRows{batch, rows, channels},
          RepeatRows{batch, rows, channels},
          MaxPoolForward{pool},
          MaxPoolBackward{pool},
          GroupNormForward{batch, rows, groups * width, groups, 1e-3},
          GroupNormBackward{batch, rows, groups * width, groups},
          SoftmaxForward{rows, channels},
          SoftmaxBackward{rows, channels},
          AttentionForward{batch, few_rows, groups, width},
          AttentionBackward{batch, few_rows, groups, width},
          EmbeddingForward{batch, classes, units},
          EmbeddingBackward{batch, classes, units},
          ClassCrossentropy{batch, classes, 0.7},
          Product{elements},
          random_permutation(draw),
          random_parts(draw)};
}

}  // namespace

std::vector<Operation> random_operations(Draw& draw) {
  const ConvolutionGeometry g =
      draw.between(0, 1) == 0 ? random_geometry(draw) : random_upsampled_geometry(draw);
  const std::int64_t batch = draw.between(1, 4), channels = draw.between(1, 9);
  const std::int64_t inputs = draw.between(1, 600), drawn = draw.between(1, 70);
  const std::int64_t units = drawn % 2 == 0 ? (drawn + 15) / 16 * 16 : drawn;  // some whole vectors
  const std::int64_t rows = draw.between(1, 200), elements = draw.between(1, 3000);
  const Extent in = random_extent(draw, 2, 7), few = random_extent(draw, 1, 3);
  const Margins pad{random_extent(draw, 0, 2), random_extent(draw, 0, 2)};
  const PoolGeometry pool = random_pool(draw);
  const bool bias = draw.between(0, 1) == 1;
  const double rate = 0.5 * draw.uniform(), exponent = 0.3 + draw.uniform();
  const auto stream = static_cast<std::uint32_t>(draw.between(0, 9999));
  std::vector<Operation> operations{
      DenseForward{batch, inputs, units, bias},
      DenseBackwardInput{batch, inputs, units},
      DenseBackwardParameters{batch, inputs, units, bias},
      ConvolutionForward{g, random_activation(draw, 3)},
      ConvolutionBackwardInput{g},
      ConvolutionBackwardParameters{g},
      PadForward{batch, channels, in, pad},
      PadBackward{batch, channels, in, pad},
      UpsampleForward{batch, channels, in, few},
      UpsampleBackward{batch, channels, in, few},
      AveragePoolForward{pool},
      AveragePoolBackward{pool},
      BatchNormTraining{rows, channels, 1e-3},
      BatchNormInference{rows, channels, 1e-3},
      BatchNormBackward{rows, channels},
      DropoutForward{elements, rate, stream},
      DropoutBackward{elements, rate, stream},
      ActivationForward{elements, random_activation(draw, 9)},
      ActivationBackward{elements, random_activation(draw, 9)},
      PowerForward{elements, exponent},
      PowerBackward{elements, exponent},
      AngleForward{batch, in},
      AngleBackward{batch, in},
      BinsForward{batch, elements},
      Accumulate{elements},
      ZeroFill{elements},
      MeanLoss{elements, static_cast<LossKind>(draw.between(0, 7)), exponent, 0.5 + draw.uniform()},
      CountEmpty{batch, draw.between(1, 2)},
      MixEvents{batch, elements},
      SlopeProbes{batch, elements}};
  for (const Operation& operation : random_layer_operations(draw)) operations.push_back(operation);
  std::sort(operations.begin(), operations.end(),
            [](const Operation& a, const Operation& b) { return a.index() < b.index(); });
  return operations;
}

}  // namespace troupe::model
