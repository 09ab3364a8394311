// Weights of the zoo's models as files of Keras, against those that the original 3DGAN keeps in its
// repository (github.com/svalleco/3Dgan, params_generator_epoch_049.hdf5 and
// params_discriminator_epoch_049.hdf5 of keras/energy_gan/maelin50_full, Keras 2.0.4): groups, and
// in each the order and shapes of weights.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "model/gan.h"
#include "pipeline/checkpoint/hdf5_tree.h"
#include "pipeline/leaving/keras_file.h"
#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

using pipeline::NetworkState;
using testing::ElementsAre;

NetworkState zeros(const model::NetworkDescription& network) {
  const auto layout = model::layout_parameters(network, model::infer_shapes(network));
  NetworkState state;
  state.weights.resize(static_cast<std::size_t>(layout.weights_size));
  state.moving.resize(static_cast<std::size_t>(layout.moving_size));
  return state;
}

// Role and shape of each weight, behind the name of its group.
std::vector<std::string> weights_in(const std::string& topology, std::size_t network) {
  const LoadedTopology loaded = parsed("model: {zoo: " + topology + "}\ndata: {train: [a.h5]}\n");
  const model::GanDescription& gan = loaded.topology.model.gan;
  pipeline::TrainingState state;
  state.generator = zeros(gan.generator);
  state.discriminator = zeros(gan.discriminator);
  const auto file = pipeline::keras_file({gan, state, {}}, network);
  CHECK(file.ok(), topology);
  pipeline::Hdf5TreeReader reader(file->bytes(), "w.h5");
  std::vector<std::string> groups, found;
  reader.read_attribute("/", "layer_names", groups);
  for (const std::string& group : groups) {
    found.push_back(group);
    std::vector<std::string> names;
    reader.read_attribute("/" + group, "weight_names", names);
    for (const std::string& name : names) {
      const auto shape = reader.shape("/" + group + "/" + name);
      CHECK(shape.has_value(), name);
      found.push_back(
          fmt::format("{} ({})", name.substr(name.rfind('/') + 1), fmt::join(*shape, ", ")));
    }
  }
  CHECK(reader.result().ok(), topology);
  return found;
}

TEST(ZooAsKeras, GeneratorOf25HasTheOrderOfTheOriginalsFile) {
  EXPECT_THAT(weights_in("gan3d_25", pipeline::kGenerator),
              ElementsAre("sequential_1", "kernel:0 (200, 3136)", "bias:0 (3136)",
                          "kernel:0 (6, 6, 8, 8, 64)", "bias:0 (64)", "gamma:0 (64)", "beta:0 (64)",
                          "kernel:0 (6, 5, 8, 64, 6)", "bias:0 (6)", "gamma:0 (6)", "beta:0 (6)",
                          "kernel:0 (3, 3, 8, 6, 6)", "bias:0 (6)", "kernel:0 (2, 2, 2, 6, 1)",
                          "moving_mean:0 (64)", "moving_variance:0 (64)", "moving_mean:0 (6)",
                          "moving_variance:0 (6)"));
}

TEST(ZooAsKeras, DiscriminatorOf25HasTheOrderOfTheOriginalsFile) {
  EXPECT_THAT(weights_in("gan3d_25", pipeline::kDiscriminator),
              ElementsAre("model_1", "kernel:0 (5, 5, 5, 1, 32)", "bias:0 (32)",
                          "kernel:0 (5, 5, 5, 32, 8)", "bias:0 (8)", "gamma:0 (8)", "beta:0 (8)",
                          "kernel:0 (5, 5, 5, 8, 8)", "bias:0 (8)", "gamma:0 (8)", "beta:0 (8)",
                          "kernel:0 (5, 5, 5, 8, 8)", "bias:0 (8)", "gamma:0 (8)", "beta:0 (8)",
                          "moving_mean:0 (8)", "moving_variance:0 (8)", "moving_mean:0 (8)",
                          "moving_variance:0 (8)", "moving_mean:0 (8)", "moving_variance:0 (8)",
                          "generation", "kernel:0 (10648, 1)", "bias:0 (1)", "auxiliary",
                          "kernel:0 (10648, 1)", "bias:0 (1)"));
}

}  // namespace
}  // namespace troupe::config
