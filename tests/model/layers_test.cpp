// Layers besides those of the 3DGANs: strides and dilations against convolutions computed cell by
// cell, and known answers.

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "model/layer_rules.h"
#include "tests/model/example_networks.h"
#include "tests/model/op_support.h"
#include "tests/model/program_runner.h"

namespace troupe::model {
namespace {

using Runner = ProgramRunner<double>;

constexpr std::int64_t kLayerBatch = 2;

NetworkDescription network_of(Shape input, LayerKind kind) {
  return {"n", input, {layer("a", std::move(kind))}, {}};
}

void expect_near(const std::vector<double>& found, const std::vector<double>& wanted,
                 const char* what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], wanted[i], 1e-10 * (1.0 + std::fabs(wanted[i]))) << what << " " << i;
  }
}

// A layer's run with the passes that the comparison needs.
struct Ran {
  explicit Ran(const NetworkDescription& network, std::uint64_t seed)
      : backend(make_reference_backend(DataType::kFloat64)),
        runner(network, *backend, kLayerBatch, seed) {
    runner.forward();
    runner.backward(Pass::kBackwardParameters);
    runner.forward();
    runner.backward(Pass::kBackwardInput);
  }
  Shape input() const { return runner.program().input_shape(); }
  Shape output() const { return runner.program().output_shape(0); }

  std::unique_ptr<Backend> backend;
  Runner runner;
};

// A kernel's gradient, and behind it the bias's: the sums of the output's.
std::vector<double> with_bias(std::vector<double> kernel, const Runner& runner, bool bias,
                              std::int64_t channels) {
  std::vector<double> sums(static_cast<std::size_t>(bias ? channels : 0), 0.0);
  for (std::size_t i = 0; bias && i < runner.output_gradients[0].size(); ++i) {
    sums[i % sums.size()] += runner.output_gradients[0][i];
  }
  kernel.insert(kernel.end(), sums.begin(), sums.end());
  return kernel;
}

// The same convolution without phases, as one in a single group.
GroupedGeometry cell_by_cell(const Convolution& convolution, const Shape& in, const Shape& out) {
  GroupedGeometry g;
  g.batch = kLayerBatch;
  g.in = in.space;
  g.out = out.space;
  g.kernel = convolution.kernel;
  g.stride = convolution.stride;
  g.dilation = convolution.dilation;
  for (int axis = 0; axis < 3; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    g.pad_before[i] = convolution_windows(convolution, axis, g.in[i]).before;
  }
  g.in_channels = in.channels;
  g.out_channels = out.channels;
  g.bias = convolution.bias;
  return g;
}

Convolution random_convolution(Draw& draw, bool strided, bool dilated) {
  Convolution convolution{draw.between(1, 3), {}};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    convolution.kernel[axis] = draw.between(1, 4);
    if (strided) convolution.stride[axis] = draw.between(1, 3);
    if (dilated) convolution.dilation[axis] = draw.between(1, 3);
  }
  const auto axis = static_cast<std::size_t>(draw.between(0, 2));
  if (strided) convolution.stride[axis] = draw.between(2, 4);
  if (dilated) convolution.dilation[axis] = draw.between(2, 4);
  convolution.padding = draw.between(0, 1) == 0 ? Padding::kSame : Padding::kValid;
  convolution.bias = draw.between(0, 1) == 0;
  return convolution;
}

TEST(Strides, AndDilationsAreThoseOfAConvolutionCellByCell) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 90; ++seed) {
    Draw draw(seed);
    const Convolution convolution = random_convolution(draw, seed % 3 != 0, seed % 3 != 1);
    const Shape input = Shape::image(
        {draw.between(4, 11), draw.between(4, 11), draw.between(4, 11)}, draw.between(1, 3));
    const NetworkDescription network = network_of(input, convolution);
    if (!infer_shapes(network).problems.empty()) continue;
    ++compared;
    SCOPED_TRACE(seed);
    Ran ran(network, seed);
    const GroupedGeometry g = cell_by_cell(convolution, ran.input(), ran.output());
    const std::size_t kernel_size =
        ran.runner.weights.size() - static_cast<std::size_t>(g.bias ? g.out_channels : 0);
    const auto behind = ran.runner.weights.begin() + static_cast<std::ptrdiff_t>(kernel_size);
    const std::vector<double> kernel(ran.runner.weights.begin(), behind),
        bias(behind, ran.runner.weights.end());
    Operands<double> forward{ran.runner.input, kernel, bias,
                             std::vector<double>(ran.runner.outputs[0].size())};
    run_operation(*ran.backend, GroupedConvolutionForward{g}, forward);
    expect_near(ran.runner.outputs[0], forward[3], "y");
    Operands<double> to_input{ran.runner.output_gradients[0], kernel,
                              std::vector<double>(ran.runner.input.size())};
    run_operation(*ran.backend, GroupedConvolutionBackwardInput{g}, to_input);
    expect_near(ran.runner.input_gradient, to_input[2], "dx");
    Operands<double> parameters{ran.runner.input, ran.runner.output_gradients[0],
                                std::vector<double>(kernel.size())};
    run_operation(*ran.backend, GroupedConvolutionBackwardParameters{g}, parameters);
    const std::vector<double> wanted = with_bias(parameters[2], ran.runner, g.bias, g.out_channels);
    expect_near(ran.runner.gradients, wanted, "weights");
  }
  EXPECT_GT(compared, 60);
}

// The stride alone says which cells of the output there are.
TEST(Strides, TakeCellsOfADilatedConvolution) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Draw draw(seed);
    Convolution both = random_convolution(draw, true, true), dilated = both;
    both.padding = dilated.padding = Padding::kValid;
    dilated.stride = {1, 1, 1};
    Shape input = Shape::image({draw.between(6, 13), 1, 1}, both.filters * draw.between(1, 2));
    input.spatial_rank = static_cast<int>(draw.between(1, 3));
    for (std::size_t axis = 1; axis < 3; ++axis) {
      if (static_cast<int>(axis) < input.spatial_rank) {
        input.space[axis] = draw.between(6, 13);
      } else {
        both.kernel[axis] = dilated.kernel[axis] = 1;
        both.stride[axis] = both.dilation[axis] = dilated.dilation[axis] = 1;
      }
    }
    if (draw.between(0, 1) == 0) both.groups = dilated.groups = both.filters;
    if (!infer_shapes(network_of(input, both)).problems.empty()) continue;
    ++compared;
    SCOPED_TRACE(seed);
    const Ran strided(network_of(input, both), seed), all(network_of(input, dilated), seed);
    ASSERT_EQ(strided.runner.weights, all.runner.weights);
    const Extent from = all.output().space, to = strided.output().space;
    std::vector<double> wanted;
    for (std::int64_t cell = 0; cell < kLayerBatch * cells(to); ++cell) {
      const std::int64_t n = cell / cells(to), x = cell / (to[1] * to[2]) % to[0];
      const std::int64_t y = cell / to[2] % to[1], z = cell % to[2];
      const std::int64_t first =
          (((n * from[0] + x * both.stride[0]) * from[1] + y * both.stride[1]) * from[2] +
           z * both.stride[2]) *
          both.filters;
      for (std::int64_t c = 0; c < both.filters; ++c) {
        wanted.push_back(all.runner.outputs[0][static_cast<std::size_t>(first + c)]);
      }
    }
    expect_near(strided.runner.outputs[0], wanted, "y");
  }
  EXPECT_GT(compared, 25);
}

std::int64_t window_along(const TransposedConvolution& transposed, std::size_t axis) {
  return window_cells(transposed.kernel[axis], transposed.dilation[axis]);
}

// Strides, dilations, groups and pads alone and together.
TransposedConvolution draw_transposed(Draw& draw) {
  TransposedConvolution transposed{draw.between(1, 3), {}};
  const bool strides = draw.between(0, 3) > 0, dilates = draw.between(0, 1) == 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    transposed.kernel[axis] = draw.between(1, 4);
    if (strides) transposed.stride[axis] = draw.between(1, 3);
    if (dilates) transposed.dilation[axis] = draw.between(1, 3);
  }
  if (draw.between(0, 2) == 0) {
    transposed.groups = draw.between(1, 2);
    transposed.filters *= transposed.groups;
  }
  transposed.bias = draw.between(0, 1) == 0;
  if (draw.between(0, 1) == 0) {
    transposed.padding = draw.between(0, 1) == 0 ? Padding::kSame : Padding::kValid;
    return transposed;
  }
  transposed.pads = Margins{};
  transposed.output_padding = Extent{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    // More than a window: some cells of the input reach nothing.
    transposed.pads->before[axis] = draw.between(0, window_along(transposed, axis) + 1);
    transposed.pads->behind[axis] = draw.between(0, window_along(transposed, axis) + 1);
    (*transposed.output_padding)[axis] = draw.between(0, transposed.stride[axis] - 1);
  }
  return transposed;
}

// The convolution that it is the transpose of: from its output to its input.
GroupedGeometry transpose_of(const TransposedConvolution& transposed, const Shape& input,
                             const Shape& output) {
  GroupedGeometry g;
  g.batch = kLayerBatch;
  g.in = output.space;
  g.out = input.space;
  g.kernel = transposed.kernel;
  g.stride = transposed.stride;
  g.dilation = transposed.dilation;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t beyond =
        std::max<std::int64_t>(window_along(transposed, axis) - g.stride[axis], 0);
    g.pad_before[axis] = transposed.padding == Padding::kSame ? beyond / 2 : 0;
    if (transposed.pads) g.pad_before[axis] = transposed.pads->before[axis];
  }
  g.in_channels = transposed.filters;
  g.out_channels = input.channels;
  g.groups = transposed.groups;
  g.bias = false;
  return g;
}

// With <a, b> the sum of products: <transposed(x), dy> = <x, convolution(dy)>.
TEST(TransposedConvolutions, AreTheTransposeOfAConvolutionCellByCell) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    Draw draw(seed);
    const TransposedConvolution transposed = draw_transposed(draw);
    const Shape input = Shape::image({draw.between(1, 5), draw.between(1, 5), draw.between(1, 5)},
                                     transposed.groups * draw.between(1, 3));
    const NetworkDescription network = network_of(input, transposed);
    if (!infer_shapes(network).problems.empty()) continue;  // nothing is left
    ++compared;
    SCOPED_TRACE(seed);
    Ran ran(network, seed);
    const GroupedGeometry g = transpose_of(transposed, input, ran.output());
    const std::size_t size = static_cast<std::size_t>(g.kernel[0] * g.kernel[1] * g.kernel[2] *
                                                      (g.in_channels / g.groups) * g.out_channels);
    const std::vector<double> kernel(
        ran.runner.weights.begin(), ran.runner.weights.begin() + static_cast<std::ptrdiff_t>(size));
    Operands<double> spread{ran.runner.input, kernel,
                            std::vector<double>(ran.runner.outputs[0].size())};
    run_operation(*ran.backend, GroupedConvolutionBackwardInput{g}, spread);
    for (std::size_t i = 0; transposed.bias && i < spread[2].size(); ++i) {
      spread[2][i] += ran.runner.weights[size + i % static_cast<std::size_t>(g.in_channels)];
    }
    expect_near(ran.runner.outputs[0], spread[2], "y");
    Operands<double> back{
        ran.runner.output_gradients[0], kernel, {}, std::vector<double>(ran.runner.input.size())};
    run_operation(*ran.backend, GroupedConvolutionForward{g}, back);
    expect_near(ran.runner.input_gradient, back[3], "dx");
    Operands<double> parameters{ran.runner.output_gradients[0], ran.runner.input,
                                std::vector<double>(size)};
    run_operation(*ran.backend, GroupedConvolutionBackwardParameters{g}, parameters);
    const std::vector<double> wanted =
        with_bias(parameters[2], ran.runner, transposed.bias, g.in_channels);
    expect_near(ran.runner.gradients, wanted, "weights");
  }
  EXPECT_GT(compared, 60);
}

// A layer of no weights in inference, of one event with these numbers.
std::vector<double> results_of(Shape input, LayerKind kind, const std::vector<double>& numbers) {
  const auto backend = make_reference_backend(DataType::kFloat64);
  Runner runner(network_of(input, std::move(kind)), *backend, 1);
  runner.input = numbers;
  runner.forward(Pass::kForwardInference);
  return runner.outputs[0];
}

const Shape kRow{{3, 1, 1}, 2, 1};  // three cells of two channels
const std::vector<double> kNumbers{1, -2, 3, 5, -7, 0};

TEST(KnownLayers, MovePartsAndAxes) {
  using Row = std::vector<double>;
  EXPECT_EQ(results_of(kRow, Permute{{Axis::kChannels, Axis::kX}}, kNumbers),
            (Row{1, 3, -7, -2, 5, 0}));
  EXPECT_EQ(results_of(kRow, Slice{Axis::kX, 1, 2}, kNumbers), (Row{3, 5, -7, 0}));
  EXPECT_EQ(results_of(kRow, Slice{Axis::kChannels, 1, 1}, kNumbers), (Row{-2, 5, 0}));
  EXPECT_EQ(results_of(kRow, Crop{{{1, 0, 0}}}, kNumbers), (Row{3, 5}));
  EXPECT_EQ(results_of(kRow, Crop{{{0, 0, 0}, {1, 0, 0}}}, kNumbers), (Row{1, -2, 3, 5}));
  EXPECT_EQ(results_of(kRow, Crop{{{2, 0, 0}, {0, 0, 0}}}, kNumbers), (Row{-7, 0}));
  EXPECT_EQ(results_of(kRow, Pad{{{0, 0, 0}, {1, 0, 0}}}, kNumbers),
            (Row{1, -2, 3, 5, -7, 0, 0, 0}));
  EXPECT_EQ(results_of(kRow, Pad{{{1, 0, 0}, {2, 0, 0}}}, kNumbers),
            (Row{0, 0, 1, -2, 3, 5, -7, 0, 0, 0, 0, 0}));
  EXPECT_EQ(results_of(kRow, Concatenate{{"input", "input"}}, kNumbers),
            (Row{1, -2, 1, -2, 1, -2, 3, 5, 3, 5, 3, 5, -7, 0, -7, 0, -7, 0}));
  EXPECT_EQ(results_of(kRow, Concatenate{{"input"}, Axis::kX}, kNumbers),
            (Row{1, -2, 3, 5, -7, 0, 1, -2, 3, 5, -7, 0}));
  EXPECT_EQ(results_of(kRow, Add{{"input", "input"}}, kNumbers), (Row{3, -6, 9, 15, -21, 0}));
  EXPECT_EQ(results_of(kRow, Multiply{"input"}, kNumbers), (Row{1, 4, 9, 25, 49, 0}));
}

TEST(KnownLayers, PoolCells) {
  using Row = std::vector<double>;
  EXPECT_EQ(results_of(kRow, MaxPool{{2, 1, 1}}, kNumbers), (Row{3, 5}));
  EXPECT_EQ(results_of(kRow, MaxPool{{2, 1, 1}, Extent{1, 1, 1}}, kNumbers), (Row{3, 5, 3, 5}));
  EXPECT_EQ(results_of(kRow, MaxPool{{2, 1, 1}, Extent{1, 1, 1}, Padding::kSame}, kNumbers),
            (Row{3, 5, 3, 5, -7, 0}));
  EXPECT_EQ(results_of(kRow, AveragePool{{2, 1, 1}, {}, Padding::kSame}, kNumbers),
            (Row{2, 1.5, -7, 0}));
  EXPECT_EQ(results_of(kRow, AveragePool{{4, 1, 1}, Extent{3, 1, 1}, Padding::kSame}, kNumbers),
            (Row{-1, 1}));
  EXPECT_EQ(results_of(kRow, GlobalMaxPool{}, kNumbers), (Row{3, 5}));
  EXPECT_EQ(results_of(kRow, GlobalAveragePool{}, kNumbers), (Row{-1, 1}));
  const Row with_nan = results_of(kRow, GlobalMaxPool{}, {1, 2, NAN, 3, 9, 4});
  EXPECT_TRUE(std::isnan(with_nan[0]));
  EXPECT_EQ(with_nan[1], 4.0);
}

// With taps 1 and 10, cell m of the output is x[2 m] + 10 x[2 m + 3] of the padded row.
TEST(KnownLayers, ConvolveWithStrideAndDilation) {
  Convolution convolution{1, {2, 1, 1}, Padding::kValid, false};
  convolution.stride = {2, 1, 1};
  convolution.dilation = {3, 1, 1};
  const auto backend = make_reference_backend(DataType::kFloat64);
  const Shape row{{7, 1, 1}, 1, 1};
  const auto run = [&](Padding padding, const std::vector<double>& dy) {
    convolution.padding = padding;
    Runner runner(network_of(row, convolution), *backend, 1);
    runner.input = {1, 2, 3, 4, 5, 6, 7};
    runner.weights = {1, 10};
    runner.output_gradients[0] = dy;
    runner.forward();
    runner.backward(Pass::kBackwardParameters);
    runner.forward();
    runner.backward(Pass::kBackwardInput);
    return std::vector{runner.outputs[0], runner.gradients, runner.input_gradient};
  };
  using Rows = std::vector<std::vector<double>>;
  EXPECT_EQ(run(Padding::kValid, {1, 100}),
            (Rows{{41, 63}, {301, 604}, {1, 0, 100, 10, 0, 1000, 0}}));
  EXPECT_EQ(run(Padding::kSame, {1, 10, 100, 1000}),
            (Rows{{30, 52, 74, 6}, {6420, 753}, {0, 10, 10, 100, 100, 1000, 1000}}));
}

// The channel features of a gate reach every cell.
TEST(KnownLayers, FeaturesStandForAllCells) {
  NetworkDescription network{"n", kRow, {}, {"gated", "shifted"}};
  network.layers = {layer("largest", GlobalMaxPool{}), layer("gated", Multiply{"largest"}, "input"),
                    layer("shifted", Add{{"largest"}}, "input")};
  const auto backend = make_reference_backend(DataType::kFloat64);
  Runner runner(network, *backend, 1);
  runner.input = kNumbers;
  runner.forward(Pass::kForwardInference);
  EXPECT_EQ(runner.outputs[0], (std::vector<double>{3, -10, 9, 25, -21, 0}));
  EXPECT_EQ(runner.outputs[1], (std::vector<double>{4, 3, 6, 10, -4, 5}));
}

TEST(KnownLayers, SoftmaxIsThatOfEachCell) {
  const auto found = results_of(kRow, Softmax{}, {0, 0, 1000, 1000 + std::log(3.0), -1, NAN});
  EXPECT_NEAR(found[0], 0.5, 1e-15);
  EXPECT_NEAR(found[2], 0.25, 1e-12);
  EXPECT_NEAR(found[3], 0.75, 1e-12);
  EXPECT_TRUE(std::isnan(found[4]) && std::isnan(found[5]));
}

TEST(KnownLayers, ActivationsHaveTheValuesOfTheirFormulas) {
  const std::vector<double> x{-30, -1, 0, 1, 2, 40};
  const auto found = [&](ActivationKind kind) { return results_of(kRow, Activation{kind}, x); };
  const auto softplus = found(ActivationKind::kSoftplus), gelu = found(ActivationKind::kGelu),
             silu = found(ActivationKind::kSilu), elu = found(ActivationKind::kElu);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = x[i];
    EXPECT_NEAR(softplus[i], std::log1p(std::exp(v)), 1e-13) << v;
    EXPECT_NEAR(gelu[i],
                0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))), 1e-13)
        << v;
    EXPECT_NEAR(silu[i], v / (1 + std::exp(-v)), 1e-13) << v;
    EXPECT_NEAR(elu[i], v < 0 ? std::expm1(v) : v, 1e-13) << v;
  }
}

// Equal keys weigh all values alike; a key that stands out takes them all.
TEST(KnownLayers, AttentionLooksAtTheKeysThatMatch) {
  const Shape three{{2, 1, 1}, 3, 1};
  EXPECT_EQ(results_of(three, Attention{1}, {5, 0, 1, 7, 0, 3}), (std::vector<double>{2, 2}));
  const auto found = results_of(three, Attention{1}, {1, 0, 1, 1, 1000, 3});
  EXPECT_NEAR(found[0], 3.0, 1e-12);
  EXPECT_NEAR(found[1], 3.0, 1e-12);
}

// Its kernel's gradient is that of the rows that were taken.
TEST(KnownLayers, EmbeddingTakesTheRowsOfItsClasses) {
  Runner runner(network_of(Shape::features(1), Embedding{3, 2}),
                *make_reference_backend(DataType::kFloat64), 3);
  runner.input = {2, 0, 2};
  runner.weights = {1, 2, 3, 4, 5, 6};
  runner.output_gradients[0] = {1, 10, 100, 1000, 7, 70};
  runner.forward();
  EXPECT_EQ(runner.outputs[0], (std::vector<double>{5, 6, 1, 2, 5, 6}));
  runner.backward(Pass::kBackwardParameters);
  EXPECT_EQ(runner.gradients, (std::vector<double>{100, 1000, 0, 0, 8, 80}));
  runner.forward();
  runner.backward(Pass::kBackwardInput);
  EXPECT_EQ(runner.input_gradient, (std::vector<double>{0, 0, 0}));
}

TEST(KnownLayers, EmbeddingOfNoClassIsNaN) {
  Operands<double> operands{{1, 0.5, 2, -1, NAN}, {10, 20, 30, 40}, std::vector<double>(10)};
  run_operation(*make_reference_backend(DataType::kFloat64), EmbeddingForward{5, 2, 2}, operands);
  EXPECT_EQ(operands[2][0], 30.0);
  EXPECT_EQ(operands[2][1], 40.0);
  for (std::size_t i = 2; i < 10; ++i) EXPECT_TRUE(std::isnan(operands[2][i])) << i;
}

TEST(KnownLayers, NormsOfSamplesHaveMeanZeroAndDeviationOne) {
  const auto backend = make_reference_backend(DataType::kFloat64);
  const auto ran = [&](LayerKind kind) {
    Runner runner(network_of(kRow, std::move(kind)), *backend, 1);
    runner.input = kNumbers;
    std::fill(runner.weights.begin(), runner.weights.end(), 0.0);
    runner.weights[0] = runner.weights[1] = 1.0;
    runner.forward(Pass::kForwardInference);
    return runner.outputs[0];
  };
  const double tiny = 1e-12;
  const auto layer_norm = ran(LayerNorm{tiny}), instance = ran(InstanceNorm{tiny}),
             group = ran(GroupNorm{1, tiny});
  EXPECT_NEAR(layer_norm[0], 1.0, 1e-9);
  EXPECT_NEAR(layer_norm[1], -1.0, 1e-9);
  EXPECT_NEAR(instance[0] + instance[2] + instance[4], 0.0, 1e-9);
  EXPECT_NEAR(instance[0] * instance[0] + instance[2] * instance[2] + instance[4] * instance[4],
              3.0, 1e-9);
  double sum = 0.0, squares = 0.0;
  for (const double v : group) {
    sum += v;
    squares += v * v;
  }
  EXPECT_NEAR(sum, 0.0, 1e-9);
  EXPECT_NEAR(squares, 6.0, 1e-9);
}

}  // namespace
}  // namespace troupe::model
