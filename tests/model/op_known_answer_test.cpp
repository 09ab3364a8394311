// Answers worked out by hand, for every backend.

#include <cmath>
#include <memory>
#include <numbers>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

enum class Kind : std::uint8_t { kReference, kCpu, kPortable };

std::unique_ptr<Backend> backend_of(Kind kind) {
  if (kind == Kind::kReference) return make_reference_backend(DataType::kFloat32);
  if (kind == Kind::kCpu) return make_cpu_backend();
  auto made = make_portable_backend();
  return made.ok() ? std::move(made).value() : nullptr;
}

class OpKnownAnswer : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!backend_) GTEST_SKIP() << "this host has no vectors for it";
    backend_->prepare_thread();
  }
  std::vector<float> run(const Operation& operation, Operands<float> operands, std::size_t output,
                         const runtime::RandomPosition& random = {}) {
    operands[output].assign(operands[output].size(), NAN);
    run_operation(*backend_, operation, operands, random);
    return operands[output];
  }
  const std::unique_ptr<Backend> backend_ = backend_of(GetParam());
};

const char* name_of(const testing::TestParamInfo<Kind>& info) {
  if (info.param == Kind::kReference) return "Reference";
  return info.param == Kind::kCpu ? "Cpu" : "Portable";
}

INSTANTIATE_TEST_SUITE_P(Backends, OpKnownAnswer,
                         testing::Values(Kind::kReference, Kind::kCpu, Kind::kPortable), name_of);

using Row = std::vector<float>;

// Along z only: kernel 4 with Keras' same padding is one cell before and two after.
TEST_P(OpKnownAnswer, EvenKernelWithSamePaddingLooksOneCellBackAndTwoAhead) {
  ConvolutionGeometry g;
  g.batch = g.in_channels = g.out_channels = 1;
  g.in = g.out = {1, 1, 5};
  g.kernel = {1, 1, 4};
  g.pad_before = {0, 0, 1};
  g.pad_after = {0, 0, 2};
  const Row x{1, 2, 3, 4, 5}, kernel{1000, 100, 10, 1};
  const auto is = [](const Row& row) {  // but for the rounding of tiles
    return testing::Pointwise(testing::FloatNear(0.01f), row);
  };
  EXPECT_THAT(run(ConvolutionForward{g, {}}, {x, kernel, {0.5f}, Row(5)}, 3),
              is({123.5f, 1234.5f, 2345.5f, 3450.5f, 4500.5f}));
  EXPECT_THAT(run(ConvolutionBackwardInput{g}, {{1, 0, 0, 0, 2}, kernel, Row(5)}, 2),
              is({100, 10, 1, 2000, 200}));
  EXPECT_THAT(run(ConvolutionBackwardParameters{g}, {x, {0, 1, 0, 0, 0}, Row(4), Row(1)}, 2),
              is({1, 2, 3, 4}));
}

TEST_P(OpKnownAnswer, ConvolutionAppliesItsActivationAfterTheBias) {
  ConvolutionGeometry g;
  g.batch = g.in_channels = 1;
  g.out_channels = 2;
  g.in = g.out = {1, 1, 2};
  g.kernel = {1, 1, 1};
  const Operands<float> operands{{1, -3}, {1, 2}, {1, -1}, Row(4)};
  EXPECT_EQ(run(ConvolutionForward{g, {ActivationKind::kRelu, 0.3}}, operands, 3),
            (Row{2, 1, 0, 0}));
  EXPECT_EQ(run(ConvolutionForward{g, {ActivationKind::kLeakyRelu, 0.5}}, operands, 3),
            (Row{2, 1, -1, -3.5f}));
}

TEST_P(OpKnownAnswer, DenseAddsItsBias) {
  EXPECT_EQ(run(DenseForward{2, 2, 3, true},
                {{1, 2, 3, 4}, {1, 10, 100, 2, 20, 200}, {5, 6, 7}, Row(6)}, 3),
            (Row{10, 56, 507, 16, 116, 1107}));
}

TEST_P(OpKnownAnswer, AveragePoolLeavesOutCellsThatFillNoWindow) {
  const Extent in{1, 5, 3}, size{1, 2, 2};
  const Row x{1, 2, 99, 3, 4, 99, 5, 6, 99, 7, 8, 99, 99, 99, 99};
  EXPECT_EQ(run(AveragePoolForward{1, 1, in, size}, {x, Row(2)}, 1), (Row{2.5f, 6.5f}));
  EXPECT_EQ(run(AveragePoolBackward{1, 1, in, size}, {{4, 8}, Row(15)}, 1),
            (Row{1, 1, 0, 1, 1, 0, 2, 2, 0, 2, 2, 0, 0, 0, 0}));
}

// Three windows of 3 cells, 2 cells apart, over 5 cells and one on either side that counts nothing.
TEST_P(OpKnownAnswer, AveragePoolDividesByTheCellsInside) {
  const PoolGeometry same{1, 1, {1, 1, 5}, {1, 1, 3}, {1, 1, 2}, {0, 0, 1}, {1, 1, 3}};
  EXPECT_EQ(run(AveragePoolForward{same}, {{2, 4, 6, 8, 10}, Row(3)}, 1), (Row{3, 6, 9}));
  EXPECT_EQ(run(AveragePoolBackward{same}, {{2, 3, 4}, Row(5)}, 1), (Row{1, 2, 1, 3, 2}));
  const PoolGeometry apart{1, 1, {1, 1, 5}, {1, 1, 1}, {1, 1, 3}, {}, {1, 1, 2}};
  EXPECT_EQ(run(AveragePoolForward{apart}, {{2, 4, 6, 8, 10}, Row(2)}, 1), (Row{2, 8}));
  EXPECT_EQ(run(AveragePoolBackward{apart}, {{3, 5}, Row(5)}, 1), (Row{3, 0, 0, 5, 0}));
}

TEST_P(OpKnownAnswer, MaxPoolSumsTheWindowsWhoseFirstLargestCellItIs) {
  const PoolGeometry overlapping{1, 1, {1, 1, 5}, {1, 1, 2}, {1, 1, 1}, {}, {1, 1, 4}};
  const Row x{5, 5, 1, 5, 2};
  EXPECT_EQ(run(MaxPoolForward{overlapping}, {x, Row(4)}, 1), (Row{5, 5, 5, 5}));
  EXPECT_EQ(run(MaxPoolBackward{overlapping}, {x, {1, 2, 4, 8}, Row(5)}, 2), (Row{1, 2, 0, 12, 0}));
}

// Every window has the whole image of 2 x 2 x 2 cells, all of them negative.
TEST_P(OpKnownAnswer, MaxPoolFindsNothingOutsideTheImage) {
  for (const std::int64_t channels : {1, 8}) {
    const PoolGeometry same{1, channels, {2, 2, 2}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {2, 2, 2}};
    const auto size = static_cast<std::size_t>(8 * channels);
    const auto width = static_cast<std::size_t>(channels);
    Row x(size, -2), dy(size, 0.5f), dx(size, 0);
    std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(3 * width), width, -1.0f);
    std::fill_n(dx.begin() + static_cast<std::ptrdiff_t>(3 * width), width, 4.0f);
    EXPECT_EQ(run(MaxPoolForward{same}, {x, Row(size)}, 1), Row(size, -1));
    EXPECT_EQ(run(MaxPoolBackward{same}, {x, dy, Row(size)}, 2), dx);
  }
}

TEST_P(OpKnownAnswer, PadAndUpsampleKeepChannelsTogether) {
  EXPECT_EQ(run(PadForward{1, 2, {1, 1, 2}, {{0, 0, 1}}}, {{1, 2, 3, 4}, Row(8)}, 1),
            (Row{0, 0, 1, 2, 3, 4, 0, 0}));
  const Margins uneven{{0, 1, 0}, {1, 0, 2}};
  const Row padded{0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(run(PadForward{1, 1, {1, 2, 2}, uneven}, {{1, 2, 3, 4}, Row(24)}, 1), padded);
  EXPECT_EQ(run(PadBackward{1, 1, {1, 2, 2}, uneven}, {padded, Row(4)}, 1), (Row{1, 2, 3, 4}));
  EXPECT_EQ(run(UpsampleForward{1, 2, {1, 1, 2}, {1, 2, 2}}, {{1, 2, 3, 4}, Row(16)}, 1),
            (Row{1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4}));
}

// Rows 1 and 3: mean 2, biased variance 1, unbiased 2.
TEST_P(OpKnownAnswer, BatchNormKeepsBiasedAndReportsUnbiasedVariance) {
  Operands<float> operands{{1, 3}, {10}, {5}, Row(2), Row(1), Row(1), Row(1), Row(1)};
  run_operation(*backend_, BatchNormTraining{2, 1, 0.0}, operands);
  EXPECT_EQ(operands[3], (Row{-5, 15}));
  EXPECT_EQ(operands[4], (Row{2}));
  EXPECT_EQ(operands[5], (Row{1}));
  EXPECT_EQ(operands[6], (Row{2}));
  EXPECT_EQ(operands[7], (Row{2}));
  EXPECT_EQ(run(BatchNormInference{2, 1, 0.0}, {{1, 3}, {10}, {5}, {2}, {4}, Row(2)}, 5),
            (Row{0, 10}));
}

TEST_P(OpKnownAnswer, DropoutKeepsExactlyTheElementsWhoseUniformReachesTheRate) {
  runtime::RandomPosition random{3, 1, 4, 1, 0};
  const std::uint32_t stream = 0x1005, count = 1003;
  for (const double rate : {0.0, 0.2, 0.3, 0.5, 1.0 - 0x1p-20}) {
    const Row y = run(DropoutForward{count, rate, stream}, {Row(count, 3), Row(count)}, 1, random);
    runtime::RandomPosition position = random;
    position.stream = stream;
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool kept = runtime::random_uniform(position, i) >= rate;
      ASSERT_EQ(y[i], kept ? 3 * static_cast<float>(1 / (1 - rate)) : 0.0f) << rate << " " << i;
    }
  }
}

// A rate that is exactly some element's uniform number keeps that element; the next double drops
// it. 37 elements: whole vectors and a rest.
TEST_P(OpKnownAnswer, DropoutRateOnTheEdgeOfAWordIsInclusive) {
  runtime::RandomPosition position{3, 0, 0, 0, 9};
  const Operands<float> operands{Row(37, 1), Row(37)};
  for (const std::uint32_t element : {0u, 5u, 14u, 31u, 36u}) {
    const double edge = runtime::random_uniform(position, element), above = std::nextafter(edge, 1);
    EXPECT_NE(run(DropoutForward{37, edge, 9}, operands, 1, position)[element], 0.0f);
    EXPECT_EQ(run(DropoutForward{37, above, 9}, operands, 1, position)[element], 0.0f);
  }
}

TEST_P(OpKnownAnswer, DropoutMaskHasAllPartsOfThePosition) {
  const DropoutForward dropout{64, 0.5, 0xfffff0};
  const Operands<float> operands{Row(64, 1), Row(64)};
  const runtime::RandomPosition base{0x123456789abcdef0, 0xfffffff0, 0xfffffff1, 0xfe, 0};
  const Row mask = run(dropout, operands, 1, base);
  for (int part = 0; part < 5; ++part) {
    runtime::RandomPosition other = base;
    if (part == 0) other.seed ^= std::uint64_t{1} << 63;
    if (part == 1) other.seed ^= 1;
    if (part == 2) other.micro_batch += 1;
    if (part == 3) other.iteration += 1;
    if (part == 4) other.slot += 1;
    EXPECT_NE(run(dropout, operands, 1, other), mask) << part;
  }
  runtime::RandomPosition position = base;
  position.stream = dropout.stream;
  for (std::uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(mask[i] != 0.0f, runtime::random_uniform(position, i) >= 0.5) << i;
  }
}

TEST_P(OpKnownAnswer, ActivationGradientAtZero) {
  const Operands<float> operands{{0, 2, -1}, {1, 1, 1}, Row(3)};
  EXPECT_EQ(run(ActivationBackward{3, {ActivationKind::kRelu, 0.3}}, operands, 2), (Row{0, 1, 0}));
  EXPECT_EQ(run(ActivationBackward{3, {ActivationKind::kLeakyRelu, 0.25}}, operands, 2),
            (Row{0.25f, 1, 0.25f}));
}

TEST_P(OpKnownAnswer, PowerOfNothingIsNothing) {
  EXPECT_EQ(run(PowerForward{4, 0.5}, {{0, 4, -4, 9}, Row(4)}, 1), (Row{0, 2, 0, 3}));
  EXPECT_EQ(run(PowerBackward{4, 0.5}, {{0, 4, -4, 16}, {1, 1, 1, 8}, Row(4)}, 2),
            (Row{0, 0.25f, 0, 1}));
}

// Tiles of events and units must not show: one sum after the other, in the order of units.
TEST_P(OpKnownAnswer, GradientOfADenseInputIsAddedInTheOrderOfUnitsForAnyExtents) {
  for (const std::size_t batch : {1, 16, 19}) {
    for (const std::size_t units : {1, 64, 131}) {
      const std::size_t inputs = 5;
      Row dy(batch * units), kernel(inputs * units), expected(batch * inputs);
      for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = std::sin(static_cast<float>(3 * i + 1));
      for (std::size_t i = 0; i < kernel.size(); ++i) {
        kernel[i] = std::cos(static_cast<float>(7 * i + 2));
      }
      for (std::size_t at = 0; at < expected.size(); ++at) {
        const std::size_t event = at / inputs, input = at % inputs;
        for (std::size_t u = 0; u < units; ++u) {
          expected[at] += dy[event * units + u] * kernel[input * units + u];
        }
      }
      const DenseBackwardInput dense{static_cast<std::int64_t>(batch), inputs,
                                     static_cast<std::int64_t>(units)};
      const Row found = run(dense, {dy, kernel, Row(batch * inputs)}, 2);
      if (GetParam() == Kind::kCpu) {
        EXPECT_THAT(found, testing::Pointwise(testing::FloatNear(1e-4f), expected));
      } else {
        EXPECT_EQ(found, expected) << batch << " events, " << units << " units";
      }
    }
  }
}

// A shower of one cell per layer in the middle column goes straight along z: m = 0 in every layer.
TEST_P(OpKnownAnswer, StraightShowerComesInAtRightAngles) {
  Row image(5 * 5 * 4);
  for (std::size_t z = 0; z < 4; ++z)
    image[(2 * 5 + 2) * 4 + z] = 0.25f * static_cast<float>(z + 1);
  EXPECT_EQ(run(AngleForward{1, {5, 5, 4}}, {image, Row(1)}, 1),
            (Row{static_cast<float>(std::numbers::pi / 2)}));
}

// Equal cells at (x 0, y z, layer z), z = 0 to 2: centre (0.5, 1.5, 1.5). Layers 0 and 2 have
// zproj 1 and, signs flipped below the centre, m = 1; layer 1 has m = 0.
TEST_P(OpKnownAnswer, DiagonalShowerWeighsItsLayersByDepth) {
  Row image(9);
  for (std::size_t z = 0; z < 3; ++z) image[z * 3 + z] = 1;
  const double quarter = std::numbers::pi / 4, half = std::numbers::pi / 2;
  const double angle = (quarter * 0.5 + half * 1.5 + quarter * 2.5) / 4.5;
  const Row found = run(AngleForward{1, {1, 3, 3}}, {image, Row(1)}, 1);
  EXPECT_FLOAT_EQ(found[0], static_cast<float>(angle));
}

TEST_P(OpKnownAnswer, EventWithoutEnergyHasTheAngleOneHundredAndNoGradient) {
  EXPECT_EQ(run(AngleForward{1, {2, 2, 2}}, {Row(8), Row(1)}, 1), (Row{100}));
  EXPECT_EQ(run(AngleBackward{1, {2, 2, 2}}, {Row(8), {1}, Row(8)}, 2), Row(8));
}

TEST_P(OpKnownAnswer, BinsAreOpenBelowAndClosedAbove) {
  const Row edges{0.05f, 0.03f, 0.02f, 0.0125f, 0.008f, 0.003f, 0.0f, 1.0f, -1.0f, 0.001f};
  EXPECT_EQ(run(BinsForward{1, 10}, {edges, Row(8)}, 1), (Row{1, 1, 1, 1, 1, 1, 2, 1}));
  Row above;
  for (const float edge : edges) above.push_back(std::nextafter(edge, 2.0f));
  EXPECT_EQ(run(BinsForward{1, 10}, {above, Row(8)}, 1), (Row{2, 1, 1, 1, 1, 1, 2, 0}));
}

TEST_P(OpKnownAnswer, AccumulateAdds) {
  Operands<float> operands{{1, 2, 3}, {10, 20, 30}};
  run_operation(*backend_, Accumulate{3}, operands);
  EXPECT_EQ(operands[1], (Row{11, 22, 33}));
}

TEST_P(OpKnownAnswer, NothingIsDoneForArraysWithoutElements) {
  run(ActivationForward{0, {ActivationKind::kRelu, 0.3}}, {{}, {}}, 1);
  run(DropoutForward{0, 0.5, 1}, {{}, {}}, 1);
  run(PowerForward{0, 0.5}, {{}, {}}, 1);
  run(SumRows{0, 0, 1}, {{}, {}}, 1);
  EXPECT_EQ(run(SumRows{2, 0, 1}, {{}, Row(2)}, 1), Row(2));
}

// Divergence must reach the loss: no activation may turn NaN into a number.
TEST_P(OpKnownAnswer, NotANumberStaysOneThroughActivationsAndHeads) {
  for (int kind = 0; kind < 9; ++kind) {
    const Activation activation{static_cast<ActivationKind>(kind), 0.3};
    EXPECT_TRUE(std::isnan(run(ActivationForward{2, activation}, {{1, NAN}, Row(2)}, 1)[1]));
    EXPECT_TRUE(
        std::isnan(run(ActivationBackward{2, activation}, {{1, 1}, {1, NAN}, Row(2)}, 2)[1]));
  }
  EXPECT_TRUE(std::isnan(run(PowerForward{1, 0.85}, {{NAN}, Row(1)}, 1)[0]));
  EXPECT_TRUE(std::isnan(run(SumRows{1, 2, 1}, {{1, NAN}, Row(1)}, 1)[0]));
  EXPECT_TRUE(std::isnan(run(AngleForward{1, {1, 1, 2}}, {{1, NAN}, Row(1)}, 1)[0]));
}

// Channels that take each of the ways a convolution can be computed.
TEST_P(OpKnownAnswer, NotANumberStaysOneThroughConvolutionsAndTouchesOnlyItsNeighbours) {
  for (const std::int64_t channels : {1, 6, 8, 32}) {
    const auto n = static_cast<std::size_t>(channels);
    ConvolutionGeometry g;
    g.batch = 1;
    g.in_channels = 8;
    g.out_channels = channels;
    g.in = g.out = {3, 3, 3};
    g.kernel = {3, 3, 3};
    g.pad_before = g.pad_after = {1, 1, 1};
    Row x(27 * 8, 1);
    x[0] = NAN;
    for (int kind = 0; kind < 3; ++kind) {
      const Activation activation{static_cast<ActivationKind>(kind), 0.3};
      const Row y =
          run(ConvolutionForward{g, activation}, {x, Row(27 * 8 * n, 1), Row(n), Row(27 * n)}, 3);
      EXPECT_TRUE(std::isnan(y[0])) << kind << " " << channels;
      EXPECT_FALSE(std::isnan(y[26 * n])) << kind << " " << channels;
    }
  }
}

TEST_P(OpKnownAnswer, NotANumberStaysOneBackwardThroughUpsampledAndLongConvolutions) {
  for (const std::int64_t channels : {1, 6}) {
    for (const std::int64_t upsample : {1, 2}) {
      ConvolutionGeometry g;
      g.batch = 1;
      g.in_channels = 2;
      g.out_channels = channels;
      g.in = {2, 2, 20};
      g.kernel = {2, 2, 5};
      g.upsample = {upsample, 1, upsample};
      g = with_output(g);
      Draw draw(1);
      Operands<float> forward = converted<float>(random_operands(ConvolutionForward{g, {}}, draw));
      forward[0].back() = NAN;
      EXPECT_TRUE(std::isnan(run(ConvolutionForward{g, {}}, forward, 3).back()));
      Operands<float> input = converted<float>(random_operands(ConvolutionBackwardInput{g}, draw));
      input[0].back() = NAN;
      EXPECT_TRUE(std::isnan(run(ConvolutionBackwardInput{g}, input, 2).back()));
      Operands<float> weights =
          converted<float>(random_operands(ConvolutionBackwardParameters{g}, draw));
      weights[1].back() = NAN;
      EXPECT_TRUE(std::isnan(run(ConvolutionBackwardParameters{g}, weights, 2).back()));
    }
  }
}

// log(1 + 3) - log 3 and log(1 + 1 + 2) - log 1, and far beyond what exp takes.
TEST_P(OpKnownAnswer, CrossEntropyOfClassesIsMinusTheLogarithmOfTheirShare) {
  const auto near = [](const Row& row) {
    return testing::Pointwise(testing::FloatNear(1e-6f), row);
  };
  const ClassCrossentropy two{2, 2, 1.0};
  const Operands<float> operands{{0, std::log(3.0f), 500, -500}, {1, 1}, Row(1), Row(4)};
  EXPECT_NEAR(run(two, operands, 2)[0], (std::log(4.0f / 3.0f) + 1000.0f) / 2.0f, 1e-4f);
  EXPECT_THAT(run(two, operands, 3), near({0.125f, -0.125f, 0.5f, -0.5f}));
  EXPECT_TRUE(std::isnan(run(two, {{0, 1, 2, 3}, {0, 2}, Row(1), Row(4)}, 2)[0]));
  const Row slopes = run(two, {{0, 1, 2, 3}, {0, 2}, Row(1), Row(4)}, 3);
  EXPECT_FALSE(std::isnan(slopes[0]));
  EXPECT_TRUE(std::isnan(slopes[2]) && std::isnan(slopes[3]));
}

}  // namespace
}  // namespace troupe::model
