#include "model/program.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/example_networks.h"
#include "tests/model/program_runner.h"
#include "tests/model/random_network.h"
#include "tests/support/fails_with.h"

namespace troupe::model {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<Backend> reference() { return make_reference_backend(DataType::kFloat64); }

// All results of all passes.
template <class T>
std::vector<std::vector<T>> run_everything(ProgramRunner<T>& runner) {
  std::vector<std::vector<T>> results;
  runner.forward(Pass::kForwardInference);
  results = runner.outputs;
  runner.forward();
  runner.backward(Pass::kBackwardParameters);
  results.insert(results.end(), runner.outputs.begin(), runner.outputs.end());
  results.push_back(runner.gradients);
  results.push_back(runner.statistics);
  runner.forward();
  runner.backward(Pass::kBackwardInput);
  results.push_back(runner.input_gradient);
  return results;
}

TEST(Program, RunningTwiceGivesTheSameBitsWhateverTheMemoryHeldBefore) {
  const auto backend = make_reference_backend(DataType::kFloat32);
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    ProgramRunner<float> runner(random_network(seed), *backend, 2, seed);
    const auto first = run_everything(runner);
    // All bits set is NaN: whatever is read before it is written spoils the results.
    std::memset(runner.workspace().arena(), 0xff, runner.program().arena_bytes());
    if (runner.program().scratch_bytes() > 0) {
      std::memset(runner.workspace().scratch(), 0xff, runner.program().scratch_bytes());
    }
    const auto second = run_everything(runner);
    ASSERT_EQ(first.size(), second.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
      ASSERT_EQ(first[i].size(), second[i].size());
      if (first[i].empty()) continue;
      EXPECT_EQ(std::memcmp(first[i].data(), second[i].data(), first[i].size() * sizeof(float)), 0)
          << "seed " << seed << " result " << i;
    }
  }
}

TEST(Program, WhatTheCallerFilledAndReadsSurvivesTheBackwardPass) {
  const auto backend = reference();
  for (const Pass pass : {Pass::kBackwardParameters, Pass::kBackwardInput}) {
    ProgramRunner<double> runner(small_discriminator(), *backend, 2);
    runner.forward();
    runner.backward(pass);
    const auto input = runner.program().input<double>(runner.workspace());
    EXPECT_TRUE(std::equal(input.begin(), input.end(), runner.input.begin()));
    for (int i = 0; i < runner.program().outputs(); ++i) {
      const auto index = static_cast<std::size_t>(i);
      const auto output = runner.program().output<double>(runner.workspace(), i);
      EXPECT_TRUE(std::equal(output.begin(), output.end(), runner.outputs[index].begin()));
      const auto given = runner.program().output_gradient<double>(runner.workspace(), i);
      EXPECT_TRUE(std::equal(given.begin(), given.end(), runner.output_gradients[index].begin()));
    }
  }
}

// The same network with every layer an output, of which nothing can be fused or renamed.
NetworkDescription with_every_layer_seen(NetworkDescription network) {
  network.outputs.clear();
  for (const Layer& each : network.layers) network.outputs.push_back(each.name);
  return network;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], 1e-11 * (1.0 + std::abs(expected[i])));
  }
}

TEST(Program, RewritesDoNotChangeResults) {
  const auto backend = reference();
  std::vector<NetworkDescription> networks{small_generator(), flat_images(), small_discriminator()};
  for (std::uint64_t seed = 0; seed < 200; ++seed) networks.push_back(random_network(seed));
  for (std::size_t n = 0; n < networks.size(); ++n) {
    SCOPED_TRACE(n);
    ProgramRunner<double> rewritten(networks[n], *backend, 2);
    ProgramRunner<double> plain(with_every_layer_seen(networks[n]), *backend, 2);
    const std::vector<int>& outputs = rewritten.program().shapes().outputs;
    for (auto& gradient : plain.output_gradients) std::fill(gradient.begin(), gradient.end(), 0.0);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      plain.output_gradients[static_cast<std::size_t>(outputs[i])] = rewritten.output_gradients[i];
    }
    for (const Pass pass : {Pass::kForwardInference, Pass::kForwardTraining}) {
      rewritten.forward(pass);
      plain.forward(pass);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        expect_near(rewritten.outputs[i], plain.outputs[static_cast<std::size_t>(outputs[i])]);
      }
    }
    expect_near(rewritten.statistics, plain.statistics);
    rewritten.backward(Pass::kBackwardParameters);
    plain.backward(Pass::kBackwardParameters);
    expect_near(rewritten.gradients, plain.gradients);
  }
}

TEST(Program, BatchNormGivesTheBatchsStatisticsAndUsesTheMovingOnesInInference) {
  NetworkDescription network{"n", Shape::image({2, 3, 2}, 2), {}, {}};
  network.layers = {layer("norm", BatchNorm{0.99, 1e-3}), layer("dropout", Dropout{0.5}),
                    layer("other", BatchNorm{})};
  network.outputs = {"dropout", "other"};
  const auto backend = reference();
  ProgramRunner<double> runner(network, *backend, 3);
  runner.forward();
  for (std::size_t channel = 0; channel < 2; ++channel) {
    double sum = 0.0, squares = 0.0;
    for (std::size_t i = channel; i < runner.input.size(); i += 2) sum += runner.input[i];
    const double mean = sum / 36.0;
    for (std::size_t i = channel; i < runner.input.size(); i += 2) {
      squares += (runner.input[i] - mean) * (runner.input[i] - mean);
    }
    EXPECT_NEAR(runner.statistics[channel], mean, 1e-14);
    EXPECT_NEAR(runner.statistics[2 + channel], squares / 35.0, 1e-14);
  }
  runner.forward(Pass::kForwardInference);
  for (std::size_t i = 0; i < runner.input.size(); ++i) {
    const std::size_t c = i % 2;
    const double expected = (runner.input[i] - runner.moving[c]) /
                                std::sqrt(runner.moving[2 + c] + 1e-3) * runner.weights[c] +
                            runner.weights[2 + c];
    EXPECT_NEAR(runner.outputs[0][i], expected, 1e-12);
  }
}

TEST(Program, DropoutDependsOnThePositionAndTheNetworkNumberAlone) {
  NetworkDescription network{"n", Shape::features(400), {}, {}};
  network.layers = {layer("dropout", Dropout{0.3})};
  const auto backend = reference();
  ProgramRunner<double> runner(network, *backend, 1);
  runner.forward();
  const auto first = runner.outputs[0];
  const auto dropped = std::count(first.begin(), first.end(), 0.0);
  EXPECT_GT(dropped, 80);
  EXPECT_LT(dropped, 160);
  runner.position.stream = 77;
  runner.forward();
  EXPECT_EQ(runner.outputs[0], first);
  runner.position.micro_batch += 1;
  runner.forward();
  EXPECT_NE(runner.outputs[0], first);
}

// Float against double, with an error of each result in parts of its norm.
void expect_agreement(const NetworkDescription& network, const Backend& backend, double error,
                      std::uint64_t seed = 1) {
  const auto judge = reference();
  ProgramRunner<float> fast(network, backend, 3, seed);
  ProgramRunner<double> exact(network, *judge, 3, seed);
  const auto got = run_everything(fast);
  const auto expected = run_everything(exact);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    double difference = 0.0, norm = 0.0;
    for (std::size_t k = 0; k < got[i].size(); ++k) {
      difference += std::pow(got[i][k] - expected[i][k], 2);
      norm += std::pow(expected[i][k], 2);
    }
    EXPECT_LE(difference, error * error * norm)
        << network.name << " seed " << seed << " result " << i;
  }
}

TEST(Program, CpuBackendAgreesWithTheReference) {
  const auto cpu = make_cpu_backend();
  cpu->prepare_thread();
  for (const NetworkDescription& network :
       {small_generator(), small_discriminator(), flat_images()}) {
    expect_agreement(network, *cpu, 1e-5);
  }
}

TEST(Program, BackendsAgreeOnRandomNetworks) {
  const auto cpu = make_cpu_backend();
  const auto portable = make_portable_backend();
  cpu->prepare_thread();
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    expect_agreement(random_network(seed), *cpu, 1e-4, seed);
    if (portable.ok()) expect_agreement(random_network(seed), **portable, 1e-4, seed);
  }
}

TEST(Program, ResultOfAMicroBatchDoesNotDependOnItsNeighboursInInference) {
  const auto backend = reference();
  ProgramRunner<double> two(flat_images(), *backend, 2), one(flat_images(), *backend, 1);
  two.forward(Pass::kForwardInference);
  one.forward(Pass::kForwardInference);
  for (std::size_t i = 0; i < one.outputs[0].size(); ++i) {
    EXPECT_EQ(one.outputs[0][i], two.outputs[0][i]);
  }
}

TEST(Program, ProblemsOfTheNetworkComeBackAsAnError) {
  const auto backend = reference();
  NetworkDescription network = small_generator();
  network.layers[5].kind = convolution(3, {3, 2, 40});
  ASSERT_THAT(Program::compile(network, *backend, {}),
              FailsWith(runtime::ErrorKind::kTopology,
                        "network small_generator: layer conv1 (convolution): kernel 40 along z"));

  ProgramOptions options;
  options.batch = 0;
  EXPECT_FALSE(Program::compile(small_generator(), *backend, options).ok());
  options.batch = std::int64_t{1} << 34;
  const auto large = Program::compile(small_generator(), *backend, options);
  ASSERT_FALSE(large.ok());
  EXPECT_THAT(large.error().message, HasSubstr("use a smaller micro-batch"));
}

TEST(Program, BackendThatRefusesAnOperationIsQuotedWithTheLayer) {
  class Refusing final : public Backend {
    DataType data_type() const override { return DataType::kFloat32; }
    runtime::Result<std::unique_ptr<Kernel>> make_kernel(const Operation&) const override {
      return runtime::Error{runtime::ErrorKind::kInternal, "out of order"};
    }
    std::string numerics_class() const override { return "none"; }
    void prepare_thread() const override {}
  };
  const auto program = Program::compile(small_generator(), Refusing(), {});
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().kind, runtime::ErrorKind::kInternal);
  EXPECT_EQ(program.error().message,
            "network small_generator, layer dense, dense_forward: out of order");
}

TEST(Program, OnlyThePassesAskedForAreCompiled) {
  const auto backend = reference();
  ProgramOptions options;
  options.forward_training = false;
  const auto inference = Program::compile(small_generator(), *backend, options).value();
  const auto training = Program::compile(small_generator(), *backend, {}).value();
  EXPECT_LT(inference->arena_bytes(), training->arena_bytes());
  EXPECT_THAT(inference->print(), Not(HasSubstr("backward")));
  Workspace workspace(*inference);
  std::vector<double> weights(100000);
  Bindings bindings;
  bindings.weights = bindings.moving = weights.data();
  inference->run(Pass::kForwardInference, bindings, workspace);
  EXPECT_DEATH(inference->run(Pass::kForwardTraining, bindings, workspace), "not compiled");
  EXPECT_DEATH(inference->output_gradient<double>(workspace, 0), "no compiled pass");
  EXPECT_DEATH(inference->input<float>(workspace), "another data type");
}

TEST(Program, MisuseEndsTheProcess) {
  const auto backend = reference();
  ProgramRunner<double> runner(small_generator(), *backend, 1);
  EXPECT_DEATH(runner.backward(Pass::kBackwardInput), "right after the forward pass");
  runner.forward(Pass::kForwardInference);
  EXPECT_DEATH(runner.backward(Pass::kBackwardParameters), "right after the forward pass");
  runner.forward();
  runner.backward(Pass::kBackwardParameters);
  EXPECT_DEATH(runner.backward(Pass::kBackwardInput), "right after the forward pass");
  Bindings bindings = runner.bindings();
  bindings.statistics = nullptr;
  EXPECT_DEATH(runner.program().run(Pass::kForwardTraining, bindings, runner.workspace()),
               "binding that is not set");
  ProgramRunner<double> other(small_generator(), *backend, 1);
  EXPECT_DEATH(other.program().run(Pass::kForwardTraining, bindings, runner.workspace()),
               "another program");
}

TEST(Program, TellsItsShapesAndPrintsItsInstructions) {
  const auto backend = reference();
  ProgramOptions options;
  options.batch = 2;
  const auto program = Program::compile(small_discriminator(), *backend, options).value();
  EXPECT_EQ(program->outputs(), 5);
  EXPECT_EQ(program->find_output("ecal"), 3);
  EXPECT_EQ(program->find_output("score"), -1);
  EXPECT_EQ(program->output_shape(4), Shape::features(8));
  EXPECT_EQ(program->input_shape(), Shape::image({5, 4, 5}, 1));
  Workspace workspace(*program);
  EXPECT_EQ(program->input<double>(workspace).size(), 200u);
  EXPECT_EQ(program->output<double>(workspace, 4).size(), 16u);
  const std::string text = program->print();
  EXPECT_THAT(text, HasSubstr("forward_inference: "));
  EXPECT_THAT(text, HasSubstr("{input}@"));
  EXPECT_THAT(text, HasSubstr(" weights[0] weights[36] -> {conv1}@"));
  EXPECT_THAT(text, HasSubstr("+> {pool gradient}@"));
}

}  // namespace
}  // namespace troupe::model
