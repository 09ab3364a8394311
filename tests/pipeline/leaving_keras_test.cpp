// Weights in files of Keras, written and read back.

#include <gmock/gmock.h>

#include <limits>
#include <map>
#include <set>

#include "pipeline/checkpoint/hdf5_tree.h"
#include "pipeline/data/hdf5_writer.h"
#include "pipeline/leaving/keras_file.h"
#include "pipeline/leaving/warm_start.h"
#include "runtime/base/disk.h"
#include "tests/pipeline/leaving_fixture.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_folder.h"

namespace troupe::pipeline {
namespace {

using model::layer;
using runtime::ErrorKind;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(Leaving, KerasWeightsComeBackToTheSameBits) {
  for (const std::size_t network : {kGenerator, kDiscriminator}) {
    const auto file = keras_file(trained_, network);
    ASSERT_TRUE(file.ok()) << file.error().message;
    const auto& made = network == kGenerator ? state_.generator : state_.discriminator;
    const auto& described = network == kGenerator ? gan_.generator : gan_.discriminator;
    NetworkState read;
    const auto result = read_keras_file(*file, "w.h5", described, read);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(read.weights, made.weights);
    EXPECT_EQ(read.moving, made.moving);
  }
}

TEST_F(Leaving, KerasWeightsThatAreNotFiniteAreRefusedByName) {
  state_.generator.weights.back() = std::numeric_limits<float>::quiet_NaN();
  const auto file = keras_file(trained_, kGenerator);
  ASSERT_TRUE(file.ok());
  NetworkState read;
  EXPECT_THAT(read_keras_file(*file, "w.h5", gan_.generator, read),
              FailsWith(ErrorKind::kData,
                        "w.h5: /sequential_1/conv3d_2/bias:0 has numbers that are "
                        "not finite"));
}

TEST_F(Leaving, EpsilonsThatFilesOfKerasDoNotHoldAreThoseThatKerasWouldNotTake) {
  for (auto* network : {&gan_.generator, &gan_.discriminator}) {
    for (auto& layer : network->layers) {
      if (auto* norm = std::get_if<model::BatchNorm>(&layer.kind)) norm->epsilon = kKerasEpsilon;
    }
  }
  EXPECT_THAT(epsilons_unlike_keras(gan_), testing::IsEmpty());
  gan_.discriminator.layers.push_back(layer("last", model::BatchNorm{0.9, 0.5}));
  gan_.generator.layers.push_back(layer("last", model::BatchNorm{0.9, 0.25}));
  EXPECT_THAT(epsilons_unlike_keras(gan_), ElementsAre(0.25, 0.5));
}

// As 3DGAN's own files: trained weights first, then moving statistics; heads apart.
TEST_F(Leaving, KerasFilesHaveTheOrderOf3dgan) {
  std::vector<std::string> names;
  const auto generator = keras_file(trained_, kGenerator);
  ASSERT_TRUE(generator.ok());
  Hdf5TreeReader g(generator->bytes(), "g.h5");
  g.read_attribute("/", "layer_names", names);
  EXPECT_THAT(names, ElementsAre("sequential_1"));
  g.read_attribute("/sequential_1", "weight_names", names);
  EXPECT_THAT(
      names,
      ElementsAre("dense_1/kernel:0", "dense_1/bias:0", "batch_normalization_1/gamma:0",
                  "batch_normalization_1/beta:0", "conv3d_1/kernel:0", "conv3d_1/bias:0",
                  "batch_normalization_2/gamma:0", "batch_normalization_2/beta:0",
                  "conv3d_2/kernel:0", "conv3d_2/bias:0", "batch_normalization_1/moving_mean:0",
                  "batch_normalization_1/moving_variance:0", "batch_normalization_2/moving_mean:0",
                  "batch_normalization_2/moving_variance:0"));
  const auto discriminator = keras_file(trained_, kDiscriminator);
  ASSERT_TRUE(discriminator.ok());
  Hdf5TreeReader d(discriminator->bytes(), "d.h5");
  d.read_attribute("/", "layer_names", names);
  EXPECT_THAT(names, ElementsAre("model_1", "generation", "auxiliary"));
  d.read_attribute("/generation", "weight_names", names);
  EXPECT_THAT(names, ElementsAre("generation/kernel:0", "generation/bias:0"));
  EXPECT_TRUE(d.result().ok()) << d.result().error().message;
}

// A layer that flattens there does not begin heads.
TEST_F(Leaving, KerasFileOfAGeneratorThatFlattensIsOneGroup) {
  gan_.generator.layers.insert(gan_.generator.layers.begin() + 2,
                               {layer("flat", model::Flatten{}), layer("model_1", model::Dense{24}),
                                layer("again", model::Reshape{model::Shape::image({2, 2, 3}, 2)})});
  state_.generator = filled(gan_.generator, 1);
  const auto file = keras_file(trained_, kGenerator);
  ASSERT_TRUE(file.ok()) << file.error().message;
  Hdf5TreeReader reader(file->bytes(), "g.h5");
  std::vector<std::string> names;
  reader.read_attribute("/", "layer_names", names);
  EXPECT_THAT(names, ElementsAre("sequential_1"));
  reader.read_attribute("/sequential_1", "weight_names", names);
  EXPECT_THAT(names, testing::Contains("dense_2/kernel:0"));
  NetworkState read;
  ASSERT_TRUE(read_keras_file(*file, "w.h5", gan_.generator, read).ok());
  EXPECT_EQ(read.weights, state_.generator.weights);
  EXPECT_EQ(read.moving, state_.generator.moving);
}

// One that is called as the group around the others, and two that differ by "_logit".
TEST_F(Leaving, KerasHeadsHaveGroupsOfTheirOwnWhateverTheyAreCalled) {
  gan_.discriminator.layers[3].name = "model_1";
  gan_.discriminator.layers[5].name = "generation_logit";
  gan_.discriminator.layers.push_back(layer("generation_bias", model::Dense{1}, "flat"));
  gan_.discriminator.layers[4].name = "first";
  gan_.discriminator.layers.push_back(layer("generation", model::Dense{1}, "flat"));
  gan_.discriminator.outputs = {"first", "generation_logit", "generation_bias", "generation"};
  state_.discriminator = filled(gan_.discriminator, 2);
  const auto file = keras_file(trained_, kDiscriminator);
  ASSERT_TRUE(file.ok()) << file.error().message;
  Hdf5TreeReader reader(file->bytes(), "d.h5");
  std::vector<std::string> names;
  reader.read_attribute("/", "layer_names", names);
  EXPECT_THAT(names,
              ElementsAre("model_1", "model_1_1", "generation", "generation_bias", "generation_1"));
  NetworkState read;
  ASSERT_TRUE(read_keras_file(*file, "w.h5", gan_.discriminator, read).ok());
  EXPECT_EQ(read.weights, state_.discriminator.weights);
}

// As Keras does with its own. A thousand files of data are named in a fact.
TEST_F(Leaving, KerasAttributesThatWouldBeTooLargeAreSpreadOverSeveral) {
  constexpr std::size_t kMost = 64512;
  model::NetworkDescription& g = gan_.generator;
  g.layers = {layer("dense", model::Dense{1})};
  for (int i = 0; i < 1800; ++i) {
    g.layers.push_back(layer(("more" + std::to_string(i)).c_str(), model::Dense{1}));
  }
  state_.generator = filled(g, 1);
  std::string data;
  for (int i = 0; i < 1100; ++i)
    data += "/data/elektronenschauer-\u00e4\u00f6\u00fc/" + std::string(80, 'x') +
            std::to_string(i) + ".h5, ";
  trained_.facts.emplace_back("data", data);
  const auto file = keras_file(trained_, kGenerator);
  ASSERT_TRUE(file.ok()) << file.error().message;
  Hdf5TreeReader reader(file->bytes(), "g.h5");
  EXPECT_FALSE(reader.has_attribute("/sequential_1", "weight_names"));
  std::vector<std::string> first, second;
  reader.read_attribute("/sequential_1", "weight_names0", first);
  reader.read_attribute("/sequential_1", "weight_names1", second);
  EXPECT_EQ(first.size() + second.size(), 2u * 1801);
  EXPECT_LE(first.size() * std::string("dense_1801/kernel:0").size(), kMost);
  std::string joined;
  for (int part = 0; reader.has_attribute("/", "troupe_data" + std::to_string(part)); ++part) {
    std::string text;
    reader.read_attribute("/", "troupe_data" + std::to_string(part), text);
    EXPECT_LE(text.size(), kMost);
    EXPECT_NE(static_cast<unsigned char>(text.front()) & 0xC0, 0x80) << "a character is cut";
    joined += text;
  }
  EXPECT_EQ(joined, data);
  NetworkState read;
  const auto result = read_keras_file(*file, "w.h5", g, read);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(read.weights, state_.generator.weights);
}

// save() of a model that is not nested: a group for each layer, below model_weights, of which some
// have no weights.
TEST_F(Leaving, KerasFileWithAGroupForEachLayerIsRead) {
  const NetworkParameters parameters(gan_.discriminator, state_.discriminator);
  Hdf5Writer file(Hdf5Writer::Order::kByName);
  std::map<std::string, std::vector<std::string>> weights;
  std::vector<std::string> layers{"input_1"};
  file.add_group("model_weights/input_1");
  file.add_attribute("model_weights/input_1", "weight_names", std::vector<std::string>{});
  for (const NamedParameter& each : parameters.all()) {
    const auto& name = each.tensor->name;
    const std::string own = name.substr(0, name.find('/'));
    if (weights.count(own) == 0) layers.push_back(own);
    weights[own].push_back(name + ":0");
    file.add_dataset("model_weights/" + own + "/" + name + ":0", each.tensor->shape,
                     std::span(each.values, static_cast<std::size_t>(each.tensor->size)));
  }
  for (const auto& [own, names] : weights) {
    file.add_attribute("model_weights/" + own, "weight_names", names);
  }
  file.add_attribute("model_weights", "layer_names", layers);
  const auto image = file.image();
  ASSERT_TRUE(image.ok()) << image.error().message;
  NetworkState read;
  const auto result = read_keras_file(*image, "w.h5", gan_.discriminator, read);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(read.weights, state_.discriminator.weights);
  EXPECT_EQ(read.moving, state_.discriminator.moving);
}

TEST_F(Leaving, KerasFilesOfOtherModelsAndOtherFilesAreRefused) {
  NetworkState read;
  const auto file = keras_file(trained_, kGenerator);
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(read_keras_file(*file, "w.h5", gan_.discriminator, read),
              FailsWith(ErrorKind::kData,
                        "w.h5: weights of another model: it has /sequential_1/dense_1/kernel:0 of "
                        "shape (5, 24) where this one has conv1/kernel of shape (2, 2, 2, 1, 2)"));
  gan_.generator.layers.resize(2);
  EXPECT_THAT(read_keras_file(*file, "w.h5", gan_.generator, read),
              FailsWith(ErrorKind::kData,
                        "batch_normalization_1/gamma:0 of shape (2) where this one "
                        "has nothing"));
  const std::string text = "no HDF5";
  auto bytes = runtime::Buffer::allocate(text.size());
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(bytes.mutable_data()));
  EXPECT_THAT(read_keras_file(bytes, "w.h5", gan_.generator, read),
              FailsWith(ErrorKind::kData, "w.h5: its HDF5 part cannot be opened"));
  Hdf5Writer empty(Hdf5Writer::Order::kByName);
  EXPECT_THAT(read_keras_file(*empty.image(), "w.h5", gan_.generator, read),
              FailsWith(ErrorKind::kData, "w.h5: / has no attribute layer_names"));
}

TEST_F(Leaving, WeightsOfKerasAreTakenWithTheDiscriminatorWhereItStandsBeside) {
  const TemporaryFolder folder;
  runtime::FileDisk disk;
  ASSERT_TRUE(disk.replace(folder / "w.h5", keras_file(trained_, kGenerator)->bytes()).ok());
  TrainingState state;
  state.discriminator.weights = {1, 2, 3};
  const auto alone = take_weights(folder / "w.h5", gan_, disk, state);
  ASSERT_TRUE(alone.ok()) << alone.error().message;
  EXPECT_THAT(*alone, HasSubstr("the discriminator by the seed"));
  EXPECT_EQ(state.generator.weights, state_.generator.weights);
  EXPECT_EQ(state.discriminator.weights, (std::vector<float>{1, 2, 3}));
  ASSERT_TRUE(disk.replace(keras_discriminator_path(folder / "w.h5"),
                           keras_file(trained_, kDiscriminator)->bytes())
                  .ok());
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"w.h5", "w_discriminator.h5"}));
  const auto both = take_weights(folder / "w.h5", gan_, disk, state);
  ASSERT_TRUE(both.ok()) << both.error().message;
  EXPECT_EQ(state.discriminator.weights, state_.discriminator.weights);
  EXPECT_EQ(state.discriminator.moving, state_.discriminator.moving);
}

}  // namespace
}  // namespace troupe::pipeline
