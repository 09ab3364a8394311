#pragma once

// A trained model that leaves: every parameter has a number of its own.

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <cstdint>

#include "pipeline/leaving/onnx_model.h"
#include "runtime/base/random.h"
#include "tests/model/example_networks.h"

namespace troupe::pipeline {

// Every layer that a generator may have, and heads as 3DGAN's discriminator has them.
inline model::GanDescription description_of_leaving() {
  model::GanDescription gan;
  gan.latent.size = 5;
  gan.latent.conditions = {model::kEnergyCondition, model::kAngleCondition};
  model::NetworkDescription& g = gan.generator;
  g = {"generator", model::Shape::features(5), {}, {}};
  g.layers = {model::layer("dense1", model::Dense{24}),
              model::layer("reshape", model::Reshape{model::Shape::image({2, 2, 3}, 2)}),
              model::layer("norm1", model::BatchNorm{}),
              model::layer("up", model::Upsample{{2, 2, 1}}),
              model::layer("pad", model::Pad{{{1, 0, 1}}}),
              model::layer("conv1", model::convolution(3, {3, 2, 2})),
              model::layer("leaky", model::Activation{model::ActivationKind::kLeakyRelu, 0.3}),
              model::layer("drop", model::Dropout{0.1}),
              model::layer("norm2", model::BatchNorm{}),
              model::layer("conv2", model::convolution(1, {2, 2, 2}, model::Padding::kSame)),
              model::layer("tanh", model::Activation{model::ActivationKind::kTanh}),
              model::layer("power", model::Power{1.5})};
  const auto shapes = model::infer_shapes(g);
  CHECK(shapes.problems.empty(), shapes.problems.empty() ? "" : shapes.problems[0].message);
  model::NetworkDescription& d = gan.discriminator;
  d = {"discriminator", shapes.layers.back(), {}, {"generation", "auxiliary"}};
  d.layers = {model::layer("conv1", model::convolution(2, {2, 2, 2})),
              model::layer("norm1", model::BatchNorm{}),
              model::layer("flat", model::Flatten{}),
              model::layer("generation_logit", model::Dense{1}),
              model::layer("generation", model::Activation{model::ActivationKind::kSigmoid}),
              model::layer("auxiliary", model::Dense{1}, "flat")};
  CHECK(model::infer_shapes(d).problems.empty());
  return gan;
}

// A number of its own in every parameter.
inline NetworkState filled(const model::NetworkDescription& network, std::uint32_t stream) {
  const auto layout = model::layout_parameters(network, model::infer_shapes(network));
  NetworkState state;
  state.weights.resize(static_cast<std::size_t>(layout.weights_size));
  state.moving.resize(static_cast<std::size_t>(layout.moving_size));
  const auto fill = [&](std::vector<float>& values, std::uint32_t slot) {
    runtime::fill_normal({.seed = stream, .iteration = slot}, values.data(),
                         static_cast<std::uint32_t>(values.size()));
  };
  fill(state.weights, 0);
  fill(state.moving, 1);
  return state;
}

class Leaving : public testing::Test {
 protected:
  Leaving() {
    state_.generator = filled(gan_.generator, 1);
    state_.discriminator = filled(gan_.discriminator, 2);
  }
  onnx::ModelProto onnx(OnnxFlavour flavour) {
    const auto bytes = onnx_model(trained_, flavour, "troupe 0.1.0");
    CHECK(bytes.ok(), bytes.ok() ? "" : bytes.error().message);
    onnx::ModelProto model;
    CHECK(model.ParseFromString(*bytes));
    return model;
  }

  model::GanDescription gan_ = description_of_leaving();
  TrainingState state_;
  TrainedModel trained_{gan_, state_, {0.85, 50.0}, {{"name", "made"}, {"licence", "CC0"}}};
};

}  // namespace troupe::pipeline
