// Every backward operation of the double reference against central differences of its forward one.

#include <cmath>

#include <gtest/gtest.h>

#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

constexpr runtime::RandomPosition kRandom{11, 2, 3, 1, 0};

// The forward operation seen as a scalar function: sum of weights x output `output`.
struct Scalar {
  Operation forward;
  std::size_t output = 0;
  std::vector<double> weights;

  double operator()(Operands<double> operands) const {
    run_operation(*make_reference_backend(DataType::kFloat64), forward, operands, kRandom);
    double sum = 0.0;
    for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * operands[output][i];
    return sum;
  }
};

Scalar random_scalar(const Operation& forward, std::size_t output, Draw& draw) {
  const auto size = operands_of(forward)[output].size;
  return {forward, output, draw.contents({"weights", size})};
}

// Compares d scalar / d operands[input] with `gradient`, element by element.
void expect_gradient(const Scalar& scalar, Operands<double> operands, std::size_t input,
                     const std::vector<double>& gradient, double tolerance = 1e-6) {
  ASSERT_EQ(gradient.size(), operands[input].size());
  double magnitude = 1e-3;
  for (double g : gradient) magnitude = std::max(magnitude, std::fabs(g));
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double value = operands[input][i];
    const double step = 1e-5 * std::max(0.1, std::fabs(value));
    operands[input][i] = value + step;
    const double above = scalar(operands);
    operands[input][i] = value - step;
    const double below = scalar(operands);
    operands[input][i] = value;
    ASSERT_NEAR(gradient[i], (above - below) / (2.0 * step), tolerance * magnitude)
        << operation_name(scalar.forward) << " operand " << input << " element " << i;
  }
}

std::vector<double> nothing(std::size_t size) { return std::vector<double>(size, NAN); }

void run_reference(const Operation& operation, Operands<double>& operands) {
  run_operation(*make_reference_backend(DataType::kFloat64), operation, operands, kRandom);
}

// For a pair x -> y and dy -> dx.
void expect_linear_pair(const Operation& forward, const Operation& backward, std::uint64_t seed) {
  Draw draw(seed);
  Operands<double> operands = random_operands(forward, draw);
  const Scalar scalar = random_scalar(forward, 1, draw);
  Operands<double> back{scalar.weights, nothing(operands[0].size())};
  run_reference(backward, back);
  expect_gradient(scalar, operands, 0, back[1]);
}

// For a pair x -> y and x, dy -> dx.
void expect_pair_with_input(const Operation& forward, const Operation& backward,
                            const Operands<double>& operands, double tolerance = 1e-6) {
  Draw draw(5);
  const Scalar scalar = random_scalar(forward, 1, draw);
  Operands<double> back{operands[0], scalar.weights, nothing(operands[0].size())};
  run_reference(backward, back);
  expect_gradient(scalar, operands, 0, back[2], tolerance);
}

TEST(OpGradient, DenseInAllThreeDirections) {
  Draw draw(1);
  const DenseForward forward{3, 7, 5, true};
  const Operands<double> operands = random_operands(forward, draw);
  const Scalar scalar = random_scalar(forward, 3, draw);
  Operands<double> input{scalar.weights, operands[1], nothing(21)};
  run_reference(DenseBackwardInput{3, 7, 5}, input);
  expect_gradient(scalar, operands, 0, input[2]);
  Operands<double> parameters{operands[0], scalar.weights, nothing(35), nothing(5)};
  run_reference(DenseBackwardParameters{3, 7, 5, true}, parameters);
  expect_gradient(scalar, operands, 1, parameters[2]);
  expect_gradient(scalar, operands, 2, parameters[3]);
}

TEST(OpGradient, ConvolutionInAllThreeDirectionsOverRandomGeometries) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Draw draw(seed);
    ConvolutionGeometry g = random_geometry(draw);
    g.in_channels = draw.between(1, 3);
    g.out_channels = draw.between(1, 3);
    g.bias = true;
    const ConvolutionForward forward{g, {}};
    const Operands<double> operands = random_operands(forward, draw);
    const Scalar scalar = random_scalar(forward, 3, draw);
    Operands<double> input{scalar.weights, operands[1], nothing(operands[0].size())};
    run_reference(ConvolutionBackwardInput{g}, input);
    expect_gradient(scalar, operands, 0, input[2]);
    Operands<double> parameters{operands[0], scalar.weights, nothing(operands[1].size()),
                                nothing(operands[2].size())};
    run_reference(ConvolutionBackwardParameters{g}, parameters);
    expect_gradient(scalar, operands, 1, parameters[2]);
    expect_gradient(scalar, operands, 2, parameters[3]);
  }
}

TEST(OpGradient, PadUpsampleAndPool) {
  const Extent in{3, 4, 5};
  for (const Margins& amount : {Margins{{1, 0, 2}}, Margins{{1, 0, 2}, {0, 3, 1}}}) {
    expect_linear_pair(PadForward{2, 2, in, amount}, PadBackward{2, 2, in, amount}, 1);
  }
  expect_linear_pair(UpsampleForward{2, 2, in, {2, 1, 3}}, UpsampleBackward{2, 2, in, {2, 1, 3}},
                     2);
  expect_linear_pair(AveragePoolForward{2, 2, in, {2, 3, 2}},
                     AveragePoolBackward{2, 2, in, {2, 3, 2}}, 3);
}

TEST(OpGradient, PoolsOfRandomWindows) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    const PoolGeometry pool = random_pool(draw);
    expect_linear_pair(AveragePoolForward{pool}, AveragePoolBackward{pool}, seed);
    expect_pair_with_input(MaxPoolForward{pool}, MaxPoolBackward{pool},
                           random_operands(MaxPoolForward{pool}, draw));
  }
}

TEST(OpGradient, BatchNormThroughTheStatistics) {
  Draw draw(4);
  const BatchNormTraining forward{13, 3, 1e-3};
  const Operands<double> operands = random_operands(forward, draw);
  const Scalar scalar = random_scalar(forward, 3, draw);
  Operands<double> ran = operands;
  run_reference(forward, ran);
  Operands<double> back{operands[0], scalar.weights, operands[1], ran[4],
                        ran[5],      nothing(39),    nothing(3),  nothing(3)};
  run_reference(BatchNormBackward{13, 3}, back);
  expect_gradient(scalar, operands, 0, back[5]);
  expect_gradient(scalar, operands, 1, back[6]);
  expect_gradient(scalar, operands, 2, back[7]);
}

TEST(OpGradient, BatchNormWithoutParameterGradientsGivesTheSameInputGradient) {
  Draw draw(4);
  const BatchNormBackward backward{13, 3};
  Operands<double> full = random_operands(backward, draw);
  Operands<double> part = full;
  part[6].clear();
  part[7].clear();
  run_reference(backward, full);
  run_reference(backward, part);
  EXPECT_EQ(full[5], part[5]);
}

TEST(OpGradient, GroupNormThroughTheStatistics) {
  Draw draw(4);
  const GroupNormForward forward{2, 5, 6, 3, 1e-3};
  const Operands<double> operands = random_operands(forward, draw);
  const Scalar scalar = random_scalar(forward, 3, draw);
  Operands<double> ran = operands;
  run_reference(forward, ran);
  Operands<double> back{operands[0], scalar.weights, operands[1], ran[4],
                        ran[5],      nothing(60),    nothing(6),  nothing(6)};
  run_reference(GroupNormBackward{2, 5, 6, 3}, back);
  expect_gradient(scalar, operands, 0, back[5]);
  expect_gradient(scalar, operands, 1, back[6]);
  expect_gradient(scalar, operands, 2, back[7]);
}

TEST(OpGradient, GroupedConvolutionInAllThreeDirectionsOverRandomGeometries) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Draw draw(seed);
    GroupedGeometry g = random_grouped_geometry(draw);
    g.bias = true;
    const GroupedConvolutionForward forward{g};
    const Operands<double> operands = random_operands(forward, draw);
    const Scalar scalar = random_scalar(forward, 3, draw);
    Operands<double> input{scalar.weights, operands[1], nothing(operands[0].size())};
    run_reference(GroupedConvolutionBackwardInput{g}, input);
    expect_gradient(scalar, operands, 0, input[2]);
    Operands<double> parameters{operands[0], scalar.weights, nothing(operands[1].size())};
    run_reference(GroupedConvolutionBackwardParameters{g}, parameters);
    expect_gradient(scalar, operands, 1, parameters[2]);
  }
}

TEST(OpGradient, PhasesAreJoinedAsTheyWereSplit) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Draw draw(seed);
    const Phases phases = random_phases(draw);
    expect_linear_pair(SplitPhases{phases}, JoinPhases{phases}, seed);
  }
}

TEST(OpGradient, MaxPoolSoftmaxAndAttention) {
  Draw draw(12);
  const MaxPoolForward pool{2, 2, {3, 4, 5}, {2, 3, 2}};
  expect_pair_with_input(pool, MaxPoolBackward{2, 2, {3, 4, 5}, {2, 3, 2}},
                         random_operands(pool, draw));
  const AttentionForward attention{2, 5, 3, 2};
  expect_pair_with_input(attention, AttentionBackward{2, 5, 3, 2},
                         random_operands(attention, draw));
  const SoftmaxForward softmax{7, 4};
  const Operands<double> operands = random_operands(softmax, draw);
  const Scalar scalar = random_scalar(softmax, 1, draw);
  Operands<double> ran = operands;
  run_reference(softmax, ran);
  Operands<double> back{ran[1], scalar.weights, nothing(28)};
  run_reference(SoftmaxBackward{7, 4}, back);
  expect_gradient(scalar, operands, 0, back[2]);
}

TEST(OpGradient, EmbeddingByTheRowsOfItsClasses) {
  Draw draw(13);
  const EmbeddingForward forward{9, 6, 3};
  const Operands<double> operands = random_operands(forward, draw);
  const Scalar scalar = random_scalar(forward, 2, draw);
  Operands<double> back{operands[0], scalar.weights, nothing(18)};
  run_reference(EmbeddingBackward{9, 6, 3}, back);
  expect_gradient(scalar, operands, 1, back[2]);
}

TEST(OpGradient, RowsAreRepeatedAndSummed) {
  expect_linear_pair(RepeatRows{3, 5, 2}, SumRows{3, 5, 2}, 14);
  expect_linear_pair(SumRows{3, 5, 2}, RepeatRows{3, 5, 2}, 15);
}

TEST(OpGradient, DropoutDrawsTheForwardMaskAgain) {
  expect_linear_pair(DropoutForward{41, 0.4, 77}, DropoutBackward{41, 0.4, 77}, 6);
}

TEST(OpGradient, EveryActivation) {
  for (int kind = 0; kind < 9; ++kind) {
    const Activation activation{static_cast<ActivationKind>(kind), 0.3};
    const ActivationForward forward{50, activation};
    Draw draw(7);
    Operands<double> operands = random_operands(forward, draw);
    const Scalar scalar = random_scalar(forward, 1, draw);
    Operands<double> ran = operands;
    run_reference(forward, ran);
    const std::size_t known = needs_argument(activation.kind) ? 0 : 1;
    Operands<double> back{ran[known], scalar.weights, nothing(50)};
    run_reference(ActivationBackward{50, activation}, back);
    expect_gradient(scalar, operands, 0, back[2]);
  }
}

// Outputs in (0.25, 0.75) and targets in (0.5, 1.5), and both again twice as far apart as Huber's
// bend.
TEST(OpGradient, EveryLoss) {
  for (int kind = 0; kind < 8; ++kind) {
    for (const double apart : {0.0, 2.0}) {
      const MeanLoss loss{20, static_cast<LossKind>(kind), 0.7};
      Draw draw(17);
      Operands<double> operands = random_operands(loss, draw);
      for (double& output : operands[0]) output = 0.25 + 0.5 * draw.uniform();
      for (double& target : operands[1]) target += apart;
      run_reference(loss, operands);
      std::vector<double> gradient = operands[3];
      for (double& slope : gradient) slope /= 0.7;
      expect_gradient({loss, 2, {1.0}}, operands, 0, gradient);
    }
  }
}

TEST(OpGradient, CrossEntropyOfClasses) {
  const ClassCrossentropy loss{9, 5, 0.7};
  Draw draw(18);
  Operands<double> operands = random_operands(loss, draw);
  for (double& output : operands[0]) output *= 4.0;
  run_reference(loss, operands);
  std::vector<double> gradient = operands[3];
  for (double& slope : gradient) slope /= 0.7;
  expect_gradient({loss, 2, {1.0}}, operands, 0, gradient);
}

// Central differences are meaningless at the kink x = 0, so all cells are positive here.
Operands<double> positive_image(std::int64_t cells, std::int64_t outputs) {
  Draw draw(9);
  return {draw.contents({"x", cells, Content::kPositive}),
          nothing(static_cast<std::size_t>(outputs))};
}

TEST(OpGradient, PowerAndSum) {
  expect_pair_with_input(PowerForward{30, 0.85}, PowerBackward{30, 0.85}, positive_image(30, 30));
  expect_pair_with_input(PowerForward{30, 1 / 0.85}, PowerBackward{30, 1 / 0.85},
                         positive_image(30, 30));
  expect_linear_pair(SumRows{3, 10, 1}, RepeatRows{3, 10, 1}, 8);
}

TEST(OpGradient, AngleOfDenseShowers) {
  const Extent space{5, 4, 6};
  expect_pair_with_input(AngleForward{2, space}, AngleBackward{2, space}, positive_image(240, 2),
                         1e-5);
}

TEST(OpGradient, AngleWithEmptyLayersIgnoresThem) {
  const Extent space{4, 4, 6};
  Operands<double> operands = positive_image(96, 1);
  std::vector<bool> empty(96);
  for (std::size_t i = 0; i < 96; ++i) {
    empty[i] = i % 6 == 0 || i % 6 == 4;
    if (empty[i]) operands[0][i] = 0.0;
  }
  Operands<double> back{operands[0], {1.0}, nothing(96)};
  run_reference(AngleBackward{1, space}, back);
  const Scalar scalar{AngleForward{1, space}, 1, {1.0}};
  for (std::size_t i = 0; i < 96; ++i) {
    if (empty[i]) continue;  // a step would fill the layer, and the angle jumps
    Operands<double> moved = operands;
    moved[0][i] += 1e-6;
    const double above = scalar(moved);
    moved[0][i] -= 2e-6;
    ASSERT_NEAR(back[2][i], (above - scalar(moved)) / 2e-6, 1e-6) << i;
  }
}

}  // namespace
}  // namespace troupe::model
