// Which convolutions of a generator are computed in int8.

#include "pipeline/data/int8_generation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "model/program.h"
#include "runtime/base/random.h"
#include "tests/model/example_networks.h"

namespace troupe::pipeline {
namespace {

using model::layer;

// A convolution that changes its image by a thousandth. The first channel of what it makes is the
// shower.
model::GanDescription nudging() {
  model::GanDescription gan;
  gan.latent.size = 4;
  gan.generator = {"generator", model::Shape::features(4), {}, {}};
  gan.generator.layers = {layer("wide", model::Dense{128}),
                          layer("before", model::Reshape{model::Shape::image({4, 4, 4}, 2)}),
                          layer("nudge", model::convolution(2, {1, 1, 1})),
                          layer("shower", model::Slice{model::Axis::kChannels, 0, 1})};
  gan.discriminator.input = model::Shape::image({4, 4, 4}, 1);
  return gan;
}

// The same, which makes a column besides: the sum of the changes.
model::GanDescription telling_changes() {
  model::GanDescription gan = nudging();
  std::vector<model::Layer>& layers = gan.generator.layers;
  layers.insert(
      layers.end() - 1,
      {layer("after", model::Flatten{}, "nudge"), layer("flat", model::Flatten{}, "before"),
       layer("both", model::Concatenate{{"after"}}), layer("change", model::Dense{1})});
  layers.back().input = "nudge";
  gan.generator.makes = {{"change", "change"}};
  gan.discriminator.columns = {"change"};
  return gan;
}

std::vector<float> weights_of(const model::NetworkDescription& network) {
  const auto shapes = model::infer_shapes(network);
  CHECK(shapes.problems.empty(), shapes.problems.empty() ? "" : shapes.problems[0].message);
  const auto layout = model::layout_parameters(network, shapes);
  std::vector<float> weights(static_cast<std::size_t>(layout.weights_size));
  for (const model::ParameterTensor& tensor : layout.weights) {
    const std::span<float> own(weights.data() + tensor.offset,
                               static_cast<std::size_t>(tensor.size));
    if (tensor.name == "wide/kernel") {
      runtime::fill_normal({.seed = 1}, own.data(), static_cast<std::uint32_t>(own.size()));
    } else if (tensor.name == "nudge/kernel") {
      std::ranges::copy(std::vector{1.001F, 0.0F, 0.0F, 1.001F}, own.begin());
    } else if (tensor.name == "change/kernel") {
      std::ranges::fill(own.first(128), -1.0F);
      std::ranges::fill(own.last(128), 1.0F);
    }
  }
  return weights;
}

std::size_t in_int8(const model::GanDescription& gan) {
  const auto backend = model::make_portable_backend();
  CHECK(backend.ok(), "this host has no portable backend");
  (*backend)->prepare_thread();
  runtime::ThreadTeam team(1);
  const auto prepared = prepare_int8(gan, weights_of(gan.generator), {}, team);
  CHECK(prepared.ok(), prepared.ok() ? "" : prepared.error().message);
  CHECK(prepared->convolutions == 1);
  return prepared->in_int8;
}

TEST(Int8Generation, ConvolutionStaysFloatWhereAColumnWouldChangeThoughNoCellDoes) {
  EXPECT_EQ(in_int8(nudging()), 1u);
  EXPECT_EQ(in_int8(telling_changes()), 0u);
}

}  // namespace
}  // namespace troupe::pipeline
