// Whole networks in double through the reference backend against finite differences.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "tests/model/example_networks.h"
#include "tests/model/program_runner.h"
#include "tests/model/random_network.h"

namespace troupe::model {
namespace {

using Runner = ProgramRunner<double>;

constexpr std::uint64_t kRandomNetworks = 100;

// True if neither the input nor a weight acts on the layer but through counts of cells.
bool passes_nothing(const Program& program, int layer) {
  if (layer < 0) return false;
  const auto i = static_cast<std::size_t>(layer);
  if (std::holds_alternative<Bins>(program.network().layers[i].kind)) return true;
  const auto& weights = program.parameters().weights;
  const auto own = [&](const ParameterTensor& tensor) { return tensor.layer == layer; };
  if (std::any_of(weights.begin(), weights.end(), own)) return false;
  const auto nothing = [&](int input) { return passes_nothing(program, input); };
  const std::vector<int>& others = program.shapes().others[i];
  return nothing(program.shapes().inputs[i]) && std::all_of(others.begin(), others.end(), nothing);
}
bool output_passes_nothing(const Program& program, std::size_t output) {
  return passes_nothing(program, program.shapes().outputs[output]);
}

// sum of output x output gradient, so that the output gradients are its derivatives.
double loss(Runner& runner) {
  runner.forward();
  double sum = 0.0;
  for (std::size_t i = 0; i < runner.outputs.size(); ++i) {
    if (output_passes_nothing(runner.program(), i)) continue;
    for (std::size_t k = 0; k < runner.outputs[i].size(); ++k) {
      sum += runner.outputs[i][k] * runner.output_gradients[i][k];
    }
  }
  return sum;
}

double slope(Runner& runner, double& variable, double step) {
  const double here = variable;
  variable = here + step;
  const double above = loss(runner);
  variable = here - step;
  const double below = loss(runner);
  variable = here;
  return (above - below) / (2.0 * step);
}

// The derivative by Richardson's extrapolation (error of order step^4), or NaN where two steps
// disagree because a kink (ReLU, the angle's floor) lies between.
double derivative(Runner& runner, double& variable) {
  const double wide = slope(runner, variable, 2e-5), narrow = slope(runner, variable, 1e-5);
  if (std::abs(wide - narrow) > 2e-7 * (1.0 + std::abs(narrow))) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return narrow + (narrow - wide) / 3.0;
}

// Compares `gradient` with the derivatives by `variables`, at most `checks` of them.
void expect_derivatives(Runner& runner, std::vector<double>& variables,
                        const std::vector<double>& gradient, std::size_t checks,
                        const std::string& what) {
  ASSERT_EQ(variables.size(), gradient.size());
  const std::size_t stride = std::max<std::size_t>(1, variables.size() / checks);
  std::size_t kinks = 0, compared = 0;
  for (std::size_t i = 0; i < variables.size(); i += stride) {
    const double expected = derivative(runner, variables[i]);
    if (std::isnan(expected)) {
      ++kinks;
      continue;
    }
    ++compared;
    EXPECT_NEAR(gradient[i], expected, 2e-7 * (1.0 + std::abs(expected))) << what << " " << i;
  }
  EXPECT_LE(kinks, compared / 10) << what;
}

void expect_gradients(const NetworkDescription& network, std::int64_t batch, std::size_t checks,
                      std::uint64_t seed = 1) {
  const auto backend = make_reference_backend(DataType::kFloat64);
  Runner runner(network, *backend, batch, seed);
  for (std::size_t i = 0; i < runner.outputs.size(); ++i) {
    if (!output_passes_nothing(runner.program(), i)) continue;
    std::fill(runner.output_gradients[i].begin(), runner.output_gradients[i].end(),
              std::numeric_limits<double>::quiet_NaN());
  }
  runner.forward();
  runner.backward(Pass::kBackwardParameters);
  runner.forward();
  runner.backward(Pass::kBackwardInput);
  const std::vector<double> weights = runner.gradients, input = runner.input_gradient;
  expect_derivatives(runner, runner.weights, weights, checks, network.name + " weight");
  expect_derivatives(runner, runner.input, input, checks, network.name + " input");
}

TEST(ProgramGradient, GeneratorAgreesWithFiniteDifferences) {
  expect_gradients(small_generator(), 3, 1000);
}

TEST(ProgramGradient, DiscriminatorWithHeadsFromOneTensorAgreesWithFiniteDifferences) {
  expect_gradients(small_discriminator(), 2, 1000);
}

TEST(ProgramGradient, NetworkOfTwoAxesAgreesWithFiniteDifferences) {
  expect_gradients(flat_images(), 2, 1000);
}

// Outputs that others read, a renamed input, a value with two readers and an output of its own, and
// two results of which nothing flows back.
TEST(ProgramGradient, OutputsInTheMiddleAgreeWithFiniteDifferences) {
  NetworkDescription network{"middle", Shape::image({3, 2, 3}, 2), {}, {}};
  network.layers = {layer("same", Reshape{Shape::features(36)}),
                    layer("conv", convolution(2, {2, 2, 2}), "input"),
                    layer("relu", Activation{ActivationKind::kRelu}),
                    layer("flat", Flatten{}),
                    layer("again", Activation{}),
                    layer("norm", BatchNorm{}, "relu"),
                    layer("dense", Dense{3}, "flat"),
                    layer("sigmoid", Activation{ActivationKind::kSigmoid}, "flat"),
                    layer("bins", Bins{}, "conv"),
                    layer("last", Dense{2}, "bins")};
  network.outputs = {"same", "relu", "flat", "again", "norm", "dense", "sigmoid", "last"};
  expect_gradients(network, 3, 1000);
}

TEST(ProgramGradient, RandomNetworksAgreeWithFiniteDifferences) {
  for (std::uint64_t seed = 0; seed < kRandomNetworks; ++seed) {
    SCOPED_TRACE(seed);
    expect_gradients(random_network(seed), 2, 12, seed);
  }
}

TEST(ProgramGradient, RandomNetworksHoldEveryKindOfLayerAndImagesOfOneToThreeAxes) {
  std::set<std::string> kinds, of_one_axis;
  std::set<int> axes;
  for (std::uint64_t seed = 0; seed < kRandomNetworks; ++seed) {
    const NetworkDescription network = random_network(seed);
    EXPECT_TRUE(infer_shapes(network).problems.empty()) << seed;
    axes.insert(network.input.spatial_rank);
    for (const Layer& each : network.layers) {
      kinds.insert(kind_name(each.kind));
      if (network.input.spatial_rank == 1) of_one_axis.insert(kind_name(each.kind));
    }
  }
  EXPECT_EQ(axes, (std::set{1, 2, 3}));
  EXPECT_EQ(kinds.size(), std::variant_size_v<LayerKind>) << testing::PrintToString(kinds);
  // An angle is one of three axes.
  EXPECT_EQ(of_one_axis.size(), std::variant_size_v<LayerKind> - 1)
      << testing::PrintToString(of_one_axis);
}

// How often it is told that some of the network's gradients are final. Each time they are.
std::size_t times_told(const NetworkDescription& network, std::uint64_t seed = 1) {
  const auto backend = make_reference_backend(DataType::kFloat64);
  Runner runner(network, *backend, 2, seed);
  std::map<std::int64_t, std::vector<double>, std::greater<>> seen;
  std::int64_t before = runner.program().parameters().weights_size;
  runner.gradients_final = [&](std::int64_t from) {
    EXPECT_LT(from, before) << network.name;
    before = from;
    seen[from] = {runner.gradients.begin() + from, runner.gradients.end()};
  };
  runner.forward();
  std::fill(runner.gradients.begin(), runner.gradients.end(), 1e300);
  runner.backward(Pass::kBackwardParameters);
  EXPECT_EQ(before, 0) << network.name;
  for (const auto& [from, gradients] : seen) {
    EXPECT_TRUE(std::equal(gradients.begin(), gradients.end(), runner.gradients.begin() + from))
        << network.name << " from " << from;
  }
  return seen.size();
}

TEST(ProgramGradient, IsToldAsFinalFromTheLastLayerToTheFirst) {
  EXPECT_GT(times_told(small_generator()), 3u);
  EXPECT_GT(times_told(small_discriminator()), 3u);
  for (std::uint64_t seed = 0; seed < kRandomNetworks; ++seed)
    times_told(random_network(seed), seed);
}

TEST(ProgramGradient, NetworkWhoseOutputsPassNothingHasAGradientOfZeros) {
  NetworkDescription network{"blind", Shape::image({3, 3, 3}, 1), {}, {}};
  network.layers = {layer("conv", convolution(2, {2, 2, 2})), layer("bins", Bins{})};
  const auto backend = make_reference_backend(DataType::kFloat64);
  Runner runner(network, *backend, 2);
  std::fill(runner.gradients.begin(), runner.gradients.end(), 5.0);
  runner.forward();
  runner.backward(Pass::kBackwardParameters);
  EXPECT_EQ(runner.gradients, std::vector<double>(runner.gradients.size(), 0.0));
  runner.forward();
  runner.backward(Pass::kBackwardInput);
  EXPECT_EQ(runner.input_gradient, std::vector<double>(runner.input.size(), 0.0));
}

}  // namespace
}  // namespace troupe::model
