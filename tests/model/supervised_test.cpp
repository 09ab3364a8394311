#include "model/supervised.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/random.h"
#include "tests/support/fails_with.h"

namespace troupe::model {
namespace {

NetworkDescription two_layers(ActivationKind end) {
  NetworkDescription network;
  network.name = "small";
  network.input = Shape::features(2);
  network.layers = {{"hidden", Dense{.units = 16}, ""},
                    {"bend", Activation{ActivationKind::kTanh}, ""},
                    {"last", Dense{.units = 1}, ""},
                    {"end", Activation{end}, ""}};
  return network;
}

// Points of a square; the target is 1 where both coordinates have one sign.
Examples quadrants(std::size_t count, std::uint64_t seed) {
  Examples examples;
  for (std::uint32_t i = 0; i < count; ++i) {
    const runtime::RandomPosition position{seed, i, 0, 0, 0};
    const double x = 2.0 * runtime::random_uniform(position, 0) - 1.0;
    const double y = 2.0 * runtime::random_uniform(position, 1) - 1.0;
    examples.inputs.push_back(static_cast<float>(x));
    examples.inputs.push_back(static_cast<float>(y));
    examples.targets.push_back(x * y > 0.0 ? 1.0F : 0.0F);
  }
  return examples;
}

SupervisedOptions quick() {
  SupervisedOptions options;
  options.rate.rate = 0.02;
  return options;
}

std::unique_ptr<SupervisedNetwork> created(const NetworkDescription& network,
                                           const SupervisedOptions& options,
                                           const Backend& backend) {
  auto made = SupervisedNetwork::create(network, options, backend);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(made).value();
}

double share_right(SupervisedNetwork& network, const Examples& examples) {
  runtime::ThreadTeam team(1);
  const auto found = network.predict(examples.inputs, team);
  std::size_t right = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    right += (found[i] > 0.5F) == (examples.targets[i] > 0.5F) ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(found.size());
}

TEST(Supervised, NetworkLearnsAClassificationThatNoLineMakes) {
  const auto backend = make_reference_backend(DataType::kFloat32);
  const auto network = created(two_layers(ActivationKind::kSigmoid), quick(), *backend);
  const Examples known = quadrants(500, 1), unknown = quadrants(500, 2);
  EXPECT_LT(share_right(*network, unknown), 0.75);
  runtime::ThreadTeam team(1);
  const double loss = network->train(known, 400, team);
  EXPECT_LT(loss, 0.2);
  EXPECT_GT(share_right(*network, unknown), 0.93);
  EXPECT_EQ(network->updates(), 400u);
}

TEST(Supervised, LossAndOptimiserAreThoseAskedFor) {
  // The least absolute error is at the median, which the one far value does not move.
  const auto backend = make_reference_backend(DataType::kFloat32);
  SupervisedOptions options = quick();
  options.loss = LossKind::kMeanAbsoluteError;
  options.optimiser = {.kind = OptimiserKind::kSgd};
  options.micro_batch = 5;
  options.micro_batches = 1;
  const auto network = created(two_layers(ActivationKind::kLinear), options, *backend);
  const Examples examples{std::vector<float>(10, 0.5F), {1.0F, 2.0F, 3.0F, 4.0F, 100.0F}};
  runtime::ThreadTeam team(1);
  network->train(examples, 600, team);
  EXPECT_NEAR(network->predict(std::vector{0.5F, 0.5F}, team)[0], 3.0F, 0.3F);
}

// With batch normalisation and dropout, whose numbers depend on the micro-batch.
NetworkDescription with_every_kind_of_state() {
  NetworkDescription network = two_layers(ActivationKind::kSigmoid);
  network.layers.insert(network.layers.begin() + 1, {"norm", BatchNorm{}, ""});
  network.layers.insert(network.layers.begin() + 3, {"drop", Dropout{0.2}, ""});
  return network;
}

TEST(Supervised, BitsAreTheSameForAnyNumberOfThreadsAndHowTrainingIsDivided) {
  const auto backend = make_reference_backend(DataType::kFloat32);
  const Examples examples = quadrants(77, 1);  // fills no whole number of updates
  const auto outputs = [&](int threads, const std::vector<std::uint64_t>& turns) {
    const auto network = created(with_every_kind_of_state(), quick(), *backend);
    runtime::ThreadTeam team(threads);
    for (const std::uint64_t updates : turns) network->train(examples, updates, team);
    return network->predict(examples.inputs, team);
  };
  const auto once = outputs(1, {10});
  EXPECT_EQ(outputs(3, {10}), once);
  EXPECT_EQ(outputs(2, {4, 6}), once);
  EXPECT_NE(outputs(1, {9}), once);
}

TEST(Supervised, SeedChangesTheWeightsAndMovingStatisticsAreLearned) {
  const auto backend = make_reference_backend(DataType::kFloat32);
  runtime::ThreadTeam team(1);
  const Examples examples = quadrants(64, 1);
  SupervisedOptions options = quick();
  const auto outputs = [&](std::uint64_t updates) {
    const auto network = created(with_every_kind_of_state(), options, *backend);
    network->train(examples, updates, team);
    return network->predict(examples.inputs, team);
  };
  const auto first = outputs(3);
  options.seed = 2;
  EXPECT_NE(outputs(3), first);
  // With a rate of 0 only the moving statistics change.
  options.rate.rate = 0.0;
  EXPECT_NE(outputs(3), outputs(1));
}

TEST(Supervised, NetworksWithProblemsOrSeveralOutputsAreRefused) {
  const auto backend = make_reference_backend(DataType::kFloat32);
  NetworkDescription network = two_layers(ActivationKind::kSigmoid);
  network.outputs = {"last", "end"};
  EXPECT_THAT(SupervisedNetwork::create(network, {}, *backend),
              FailsWith(runtime::ErrorKind::kTopology, "has one output"));
  network.outputs = {"nowhere"};
  EXPECT_FALSE(SupervisedNetwork::create(network, {}, *backend).ok());
}

}  // namespace
}  // namespace troupe::model
