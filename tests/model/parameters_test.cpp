// The parameters of a network and their first values.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/network.h"
#include "model/streams.h"
#include "runtime/base/random.h"
#include "tests/model/example_networks.h"

namespace troupe::model {
namespace {

using ::testing::ElementsAre;

ParameterLayout layout_of(const NetworkDescription& network) {
  const NetworkShapes shapes = infer_shapes(network);
  for (const NetworkProblem& problem : shapes.problems) ADD_FAILURE() << problem.message;
  return layout_parameters(network, shapes);
}

TEST(Parameters, AreNamedShapedAndOrderedAsKerasDoes) {
  const ParameterLayout layout = layout_of(small_generator());
  std::vector<std::string> names;
  std::int64_t offset = 0;
  for (const ParameterTensor& tensor : layout.weights) {
    names.push_back(tensor.name);
    EXPECT_EQ(tensor.offset, offset);
    EXPECT_EQ(tensor.size, std::accumulate(tensor.shape.begin(), tensor.shape.end(),
                                           std::int64_t{1}, std::multiplies<>()));
    offset += tensor.size;
  }
  EXPECT_EQ(layout.weights_size, offset);
  EXPECT_THAT(names, ElementsAre("dense/kernel", "dense/bias", "conv1/kernel", "conv1/bias",
                                 "norm/gamma", "norm/beta", "conv2/kernel", "conv2/bias"));
  EXPECT_THAT(layout.weights[0].shape, ElementsAre(5, 12));
  EXPECT_THAT(layout.weights[2].shape, ElementsAre(3, 2, 4, 2, 3));
  EXPECT_EQ(layout.weights[2].fan_in, 48);
  EXPECT_EQ(layout.weights[2].fan_out, 72);
  ASSERT_EQ(layout.moving.size(), 2u);
  EXPECT_EQ(layout.moving[0].name, "norm/moving_mean");
  EXPECT_EQ(layout.moving[1].name, "norm/moving_variance");
  EXPECT_EQ(layout.moving[1].offset, 3);
}

TEST(Parameters, ConvolutionOfAnImageOfTwoAxesHasAKernelOfTwo) {
  const ParameterLayout layout = layout_of(flat_images());
  EXPECT_THAT(layout.weights[0].shape, ElementsAre(3, 4, 2, 3));
  EXPECT_EQ(layout.weights[0].fan_in, 24);
}

class InitialValues : public ::testing::Test {
 protected:
  void initialise(const NetworkDescription& network, std::uint64_t seed, int number) {
    layout_ = layout_of(network);
    weights_.assign(static_cast<std::size_t>(layout_.weights_size), -7.0F);
    moving_.assign(static_cast<std::size_t>(layout_.moving_size), -7.0F);
    initialise_parameters(layout_, seed, number, weights_.data(), moving_.data());
  }
  std::span<const float> tensor(std::size_t index) const {
    const ParameterTensor& found = layout_.weights[index];
    return std::span<const float>(weights_).subspan(static_cast<std::size_t>(found.offset),
                                                    static_cast<std::size_t>(found.size));
  }

  ParameterLayout layout_;
  std::vector<float> weights_, moving_;
};

TEST_F(InitialValues, UniformKernelsComeFromTheDocumentedPlaces) {
  initialise(small_generator(), 5, 0);
  const auto kernel = tensor(2);
  const double limit = std::sqrt(6.0 / (48 + 72));
  const runtime::RandomPosition position{5, 0, 0, 0, initialiser_stream(0, 2)};
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const double u = runtime::random_uniform(position, static_cast<std::uint32_t>(i));
    ASSERT_EQ(kernel[i], static_cast<float>(limit * (2.0 * u - 1.0)));
  }
}

TEST_F(InitialValues, DistributionsHaveTheDeviationTheirNamesPromise) {
  for (const Initialiser initialiser :
       {Initialiser::kGlorotUniform, Initialiser::kGlorotNormal, Initialiser::kHeUniform}) {
    NetworkDescription network{"n", Shape::features(200), {}, {}};
    network.layers = {layer("a", Dense{300, true, initialiser})};
    initialise(network, 3, 1);
    double sum = 0.0, squares = 0.0, largest = 0.0;
    for (const float value : tensor(0)) {
      sum += value;
      squares += static_cast<double>(value) * value;
      largest = std::max(largest, std::abs(static_cast<double>(value)));
    }
    const double n = 60000.0;
    const double variance = initialiser == Initialiser::kHeUniform ? 2.0 / 200 : 2.0 / 500;
    EXPECT_NEAR(sum / n, 0.0, 5.0 * std::sqrt(variance / n));
    EXPECT_NEAR(squares / n, variance, 0.03 * variance);
    const double bound = initialiser == Initialiser::kGlorotNormal
                             ? 2.0 * std::sqrt(variance) / 0.87962566103423978
                             : std::sqrt(3.0 * variance);
    EXPECT_LE(largest, bound * (1 + 1e-6));
    EXPECT_GE(largest, 0.99 * bound);
  }
}

TEST_F(InitialValues, TruncatedNumbersAreDrawnAgainAtTheNextSlot) {
  NetworkDescription network{"n", Shape::features(20), {}, {}};
  network.layers = {layer("a", Dense{30, false, Initialiser::kGlorotNormal})};
  initialise(network, 3, 0);
  runtime::RandomPosition position{3, 0, 0, 0, initialiser_stream(0, 0)};
  const double scale = std::sqrt(2.0 / 50) / 0.87962566103423978;
  int redrawn = 0;
  for (std::uint32_t i = 0; i < 600; ++i) {
    position.slot = 0;
    double z = runtime::random_normal(position, i);
    while (std::abs(z) > 2.0) {
      ++redrawn;
      ++position.slot;
      z = runtime::random_normal(position, i);
    }
    ASSERT_EQ(tensor(0)[i], static_cast<float>(z * scale));
  }
  EXPECT_GT(redrawn, 10);
}

TEST_F(InitialValues, OtherParametersBeginNeutral) {
  initialise(small_generator(), 9, 0);
  EXPECT_THAT(tensor(1), ::testing::Each(0.0F));
  EXPECT_THAT(tensor(4), ::testing::Each(1.0F));
  EXPECT_THAT(tensor(5), ::testing::Each(0.0F));
  EXPECT_THAT(moving_, ElementsAre(0, 0, 0, 1, 1, 1));
}

TEST_F(InitialValues, DependOnSeedAndNetworkAndNothingElse) {
  initialise(small_generator(), 9, 0);
  const std::vector<float> first = weights_;
  initialise(small_generator(), 9, 0);
  EXPECT_EQ(weights_, first);
  initialise(small_generator(), 10, 0);
  EXPECT_NE(weights_, first);
  initialise(small_generator(), 9, 1);
  EXPECT_NE(weights_, first);
}

}  // namespace
}  // namespace troupe::model
