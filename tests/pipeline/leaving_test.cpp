// Files for other programs, read back by the libraries of those programs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>
#include <zip.h>

#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "pipeline/checkpoint/hdf5_tree.h"
#include "pipeline/data/hdf5_writer.h"
#include "pipeline/leaving/keras_file.h"
#include "pipeline/leaving/model_card.h"
#include "pipeline/leaving/numpy_archive.h"
#include "pipeline/leaving/onnx_model.h"
#include "pipeline/leaving/warm_start.h"
#include "runtime/base/disk.h"
#include "runtime/base/random.h"
#include "tests/model/example_networks.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_folder.h"

namespace troupe::pipeline {
namespace {

using model::layer;
using runtime::ErrorKind;
using testing::ElementsAre;
using testing::HasSubstr;

// Every layer that a generator may have, and heads as 3DGAN's discriminator has them.
model::GanDescription description() {
  model::GanDescription gan;
  gan.latent.size = 5;
  gan.latent.conditions = {model::kEnergyCondition, model::kAngleCondition};
  model::NetworkDescription& g = gan.generator;
  g = {"generator", model::Shape::features(5), {}, {}};
  g.layers = {layer("dense1", model::Dense{24}),
              layer("reshape", model::Reshape{model::Shape::image({2, 2, 3}, 2)}),
              layer("norm1", model::BatchNorm{}),
              layer("up", model::Upsample{{2, 2, 1}}),
              layer("pad", model::Pad{{1, 0, 1}}),
              layer("conv1", model::convolution(3, {3, 2, 2})),
              layer("leaky", model::Activation{model::ActivationKind::kLeakyRelu, 0.3}),
              layer("drop", model::Dropout{0.1}),
              layer("norm2", model::BatchNorm{}),
              layer("conv2", model::convolution(1, {2, 2, 2}, model::Padding::kSame)),
              layer("tanh", model::Activation{model::ActivationKind::kTanh}),
              layer("power", model::Power{1.5})};
  const auto shapes = model::infer_shapes(g);
  CHECK(shapes.problems.empty(), shapes.problems.empty() ? "" : shapes.problems[0].message);
  model::NetworkDescription& d = gan.discriminator;
  d = {"discriminator", shapes.layers.back(), {}, {"generation", "auxiliary"}};
  d.layers = {layer("conv1", model::convolution(2, {2, 2, 2})),
              layer("norm1", model::BatchNorm{}),
              layer("flat", model::Flatten{}),
              layer("generation_logit", model::Dense{1}),
              layer("generation", model::Activation{model::ActivationKind::kSigmoid}),
              layer("auxiliary", model::Dense{1}, "flat")};
  CHECK(model::infer_shapes(d).problems.empty());
  return gan;
}

// A number of its own in every parameter.
NetworkState filled(const model::NetworkDescription& network, std::uint32_t stream) {
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

  model::GanDescription gan_ = description();
  TrainingState state_;
  TrainedModel trained_{gan_, state_, {0.85, 50.0}, {{"name", "made"}, {"licence", "CC0"}}};
};

std::string entry_of(const std::string& archive, const char* name) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(archive.data(), archive.size(), 0, &error);
  zip_t* opened = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
  CHECK(opened != nullptr, zip_error_strerror(&error));
  zip_stat_t stat;
  CHECK(zip_stat(opened, name, 0, &stat) == 0, name);
  std::string content(stat.size, '\0');
  zip_file_t* file = zip_fopen(opened, name, 0);
  CHECK(zip_fread(file, content.data(), content.size()) == static_cast<zip_int64_t>(stat.size));
  zip_fclose(file);
  zip_discard(opened);
  return content;
}

std::vector<std::int64_t> dimensions(const onnx::ValueInfoProto& value) {
  std::vector<std::int64_t> sizes;
  for (const auto& dimension : value.type().tensor_type().shape().dim()) {
    sizes.push_back(dimension.has_dim_value() ? dimension.dim_value() : -1);
  }
  return sizes;
}

// Strict inference fails where an operator's inputs do not fit or an output is not as it says.
TEST_F(Leaving, OnnxIsWhatItsCheckerTakesWithTheShapesItSays) {
  for (const OnnxFlavour flavour : {OnnxFlavour::k3dgan, OnnxFlavour::kPar04}) {
    onnx::ModelProto model = onnx(flavour);
    EXPECT_EQ(model.opset_import(0).version(), 17);
    EXPECT_NO_THROW(onnx::checker::check_model(model));
    EXPECT_NO_THROW(onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                                       {true, 1, true}));
  }
}

TEST_F(Leaving, OnnxFlavoursHaveTheInputsOfTheirPrograms) {
  const model::Shape shape = model::infer_shapes(gan_.generator).layers.back();
  const auto& space = shape.space;
  const onnx::ModelProto plain = onnx(OnnxFlavour::k3dgan);
  EXPECT_EQ(plain.graph().input(0).name(), "latent");
  EXPECT_THAT(dimensions(plain.graph().input(0)), ElementsAre(-1, 5));
  EXPECT_THAT(dimensions(plain.graph().output(0)),
              ElementsAre(-1, space[0], space[1], space[2], 1));
  const onnx::ModelProto par04 = onnx(OnnxFlavour::kPar04);
  ASSERT_EQ(par04.graph().input_size(), 1);
  EXPECT_EQ(par04.graph().input(0).name(), "input");
  EXPECT_THAT(dimensions(par04.graph().input(0)), ElementsAre(-1, 3 + 4));
  EXPECT_THAT(dimensions(par04.graph().output(0)), ElementsAre(-1, shape.elements()));
  std::map<std::string, std::string> facts;
  for (const auto& entry : par04.metadata_props()) facts[entry.key()] = entry.value();
  EXPECT_EQ(facts, (std::map<std::string, std::string>{{"name", "made"}, {"licence", "CC0"}}));
}

// Its last layer reshapes, as the writer does behind it.
TEST_F(Leaving, OnnxValuesHaveNamesOfTheirOwnWhateverLayersAreCalled) {
  const model::Shape image = model::infer_shapes(gan_.generator).layers.back();
  gan_.generator.layers[0].name = "latent";
  gan_.generator.layers[2].name = "energy";
  gan_.generator.layers.push_back(layer("shower", model::Reshape{image}));
  for (const OnnxFlavour flavour : {OnnxFlavour::k3dgan, OnnxFlavour::kPar04}) {
    onnx::ModelProto model = onnx(flavour);
    EXPECT_NO_THROW(onnx::checker::check_model(model));
    std::set<std::string> names;
    for (const auto& node : model.graph().node()) {
      EXPECT_TRUE(names.insert(node.output(0)).second) << node.output(0);
    }
    for (const auto& constant : model.graph().initializer()) {
      EXPECT_TRUE(names.insert(constant.name()).second) << constant.name();
    }
  }
}

// A network that reads an image with two channels more, looks at all cells, and has two outputs.
TEST_F(Leaving, OnnxOfATaskOfOneNetworkHasItsInputAndEachOfItsOutputs) {
  gan_.task = model::Task::kDiffusion;
  model::NetworkDescription& network = gan_.discriminator;
  network = {"network", model::Shape::image({4, 3, 2}, 3), {}, {"velocity", "size"}};
  network.layers = {
      layer("looks", model::Convolution{12, {1, 1, 1}}), layer("seen", model::Attention{2}),
      layer("silu", model::Activation{model::ActivationKind::kSilu}),
      layer("velocity", model::Convolution{2, {1, 1, 1}}), layer("size", model::Dense{1}, "silu")};
  state_.discriminator = filled(network, 3);
  onnx::ModelProto model = onnx(OnnxFlavour::k3dgan);
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  EXPECT_NO_THROW(onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                                     {true, 1, true}));
  ASSERT_EQ(model.graph().input_size(), 1);
  EXPECT_EQ(model.graph().input(0).name(), "input");
  EXPECT_THAT(dimensions(model.graph().input(0)), ElementsAre(-1, 4, 3, 2, 3));
  EXPECT_EQ(model.graph().output(0).name(), "velocity");
  EXPECT_THAT(dimensions(model.graph().output(0)), ElementsAre(-1, 4, 3, 2, 2));
  EXPECT_EQ(model.graph().output(1).name(), "size");
  EXPECT_THAT(dimensions(model.graph().output(1)), ElementsAre(-1, 1));
  EXPECT_THAT(onnx_model(trained_, OnnxFlavour::kPar04, "troupe 0.1.0"),
              FailsWith(ErrorKind::kTopology, "not the network of task diffusion"));
  EXPECT_THAT(entry_of(*numpy_archive(trained_), "network/looks/kernel.npy"),
              HasSubstr("'shape': (1, 1, 1, 3, 12), }"));
}

TEST_F(Leaving, OnnxPoolsHaveTheWindowsOfTheirLayers) {
  gan_.task = model::Task::kSupervised;
  model::NetworkDescription& network = gan_.discriminator;
  network = {"network", model::Shape{{7, 5, 1}, 2, 2}, {}, {}};
  network.layers = {
      layer("peaks", model::MaxPool{{3, 2, 1}, model::Extent{2, 1, 1}, model::Padding::kSame}),
      layer("means", model::AveragePool{{3, 2, 1}, model::Extent{1, 2, 1}}),
      layer("halves", model::AveragePool{{2, 2, 1}}), layer("kind", model::Dense{2})};
  state_.discriminator = filled(network, 3);
  onnx::ModelProto model = onnx(OnnxFlavour::k3dgan);
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  EXPECT_NO_THROW(onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                                     {true, 1, true}));
  std::map<std::string, std::map<std::string, std::vector<std::int64_t>>> pools;
  for (const auto& node : model.graph().node()) {
    for (const auto& attribute : node.attribute()) {
      pools[node.output(0)][attribute.name()].assign(attribute.ints().begin(),
                                                     attribute.ints().end());
    }
  }
  EXPECT_THAT(pools.at("peaks/output").at("kernel_shape"), ElementsAre(3, 2, 1));
  EXPECT_THAT(pools.at("peaks/output").at("strides"), ElementsAre(2, 1, 1));
  EXPECT_THAT(pools.at("peaks/output").at("pads"), ElementsAre(1, 0, 0, 1, 1, 0));
  EXPECT_THAT(pools.at("means/output").at("strides"), ElementsAre(1, 2, 1));
  EXPECT_THAT(pools.at("means/output").at("pads"), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(pools.at("halves/output").at("strides"), ElementsAre(2, 2, 1));
}

TEST_F(Leaving, OnnxTransposedConvolutionsHaveTheirPads) {
  gan_.task = model::Task::kSupervised;
  model::NetworkDescription& network = gan_.discriminator;
  model::TransposedConvolution padded{2, {3, 4, 1}, {2, 3, 1}};
  padded.pads = {1, 2, 0};
  padded.output_padding = {1, 2, 0};
  network = {"network", model::Shape{{7, 5, 1}, 2, 2}, {}, {}};
  network.layers = {layer("padded", padded), layer("kind", model::Dense{2})};
  state_.discriminator = filled(network, 3);
  onnx::ModelProto model = onnx(OnnxFlavour::k3dgan);
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  EXPECT_NO_THROW(onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                                     {true, 1, true}));
  std::map<std::string, std::vector<std::int64_t>> found;
  for (const auto& node : model.graph().node()) {
    if (node.op_type() != "ConvTranspose") continue;
    for (const auto& attribute : node.attribute()) {
      found[attribute.name()].assign(attribute.ints().begin(), attribute.ints().end());
    }
  }
  EXPECT_THAT(found.at("pads"), ElementsAre(1, 2, 0, 1, 2, 0));
  EXPECT_THAT(found.at("output_padding"), ElementsAre(1, 2, 0));
}

// It is told an energy and a column, and looks at nothing else of the event but its sum.
TEST_F(Leaving, OnnxOfANetworkThatIsToldConditionsHasThemAsItsSecondInput) {
  gan_.task = model::Task::kSupervised;
  model::NetworkDescription& network = gan_.discriminator;
  network = {"network", model::Shape::image({2, 2, 2}, 1), {}, {"kind"}, {"energy", "eta"}};
  network.layers = {
      layer("asked", model::Dense{3}, "conditions"), layer("sum", model::Sum{}, "input"),
      layer("all", model::Concatenate{{"asked", "conditions"}}), layer("kind", model::Dense{2})};
  state_.discriminator = filled(network, 3);
  onnx::ModelProto model = onnx(OnnxFlavour::k3dgan);
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  EXPECT_NO_THROW(onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                                     {true, 1, true}));
  ASSERT_EQ(model.graph().input_size(), 2);
  EXPECT_EQ(model.graph().input(0).name(), "input");
  EXPECT_EQ(model.graph().input(1).name(), "conditions");
  EXPECT_THAT(dimensions(model.graph().input(1)), ElementsAre(-1, 2));
  std::map<std::string, std::vector<std::string>> reads;  // by what each node makes
  for (const auto& node : model.graph().node()) {
    reads[node.output(0)].assign(node.input().begin(), node.input().end());
  }
  EXPECT_EQ(reads.at("asked/output").front(), "conditions");
  EXPECT_THAT(reads.at("all/output"), ElementsAre("sum/output", "asked/output", "conditions"));
}

TEST_F(Leaving, OnnxHasTheColumnsThatAreMadeBesideTheShower) {
  model::NetworkDescription& generator = gan_.generator;
  generator.layers.insert(generator.layers.begin(), layer("leakage", model::Dense{1}));
  generator.layers[1].input = "input";
  generator.makes = {{"shower", "leakage"}};
  state_.generator = filled(generator, 1);
  const onnx::ModelProto model = onnx(OnnxFlavour::k3dgan);
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  EXPECT_EQ(model.graph().output(1).name(), "column shower");
  EXPECT_THAT(dimensions(model.graph().output(1)), ElementsAre(-1, 1));
  std::map<std::string, std::string> made_of;
  for (const auto& node : model.graph().node()) made_of[node.output(0)] = node.input(0);
  EXPECT_EQ(made_of.at("column shower"), "leakage/output");
  EXPECT_EQ(onnx(OnnxFlavour::kPar04).graph().output_size(), 1);
}

TEST_F(Leaving, OnnxRefusesALayerThatItCannotSay) {
  gan_.generator.layers.push_back(layer("angles", model::Angle{}));
  EXPECT_THAT(onnx_model(trained_, OnnxFlavour::k3dgan, "troupe 0.1.0"),
              FailsWith(ErrorKind::kTopology,
                        "generator: layer angles (angle) has no counterpart in ONNX"));
}

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

TEST_F(Leaving, NumpyArchiveHoldsEveryParameterInItsShape) {
  const auto archive = numpy_archive(trained_);
  ASSERT_TRUE(archive.ok()) << archive.error().message;
  EXPECT_EQ(*archive, *numpy_archive(trained_));
  const std::string kernel = entry_of(*archive, "discriminator/conv1/kernel.npy");
  const std::size_t data = kernel.size() - 16 * sizeof(float);
  EXPECT_EQ(data % 64, 0u);
  EXPECT_THAT(kernel.substr(0, data), testing::StartsWith(std::string("\x93NUMPY\x01\x00", 8)));
  EXPECT_THAT(kernel.substr(0, data), HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': "
                                                "(2, 2, 2, 1, 2), }"));
  EXPECT_EQ(std::memcmp(kernel.data() + data, state_.discriminator.weights.data(), 64), 0);
  EXPECT_THAT(entry_of(*archive, "generator/norm1/moving_mean.npy"), HasSubstr("'shape': (2,), }"));
  EXPECT_THAT(entry_of(*archive, "facts/licence.npy"), testing::EndsWith("CC0"));
}

TEST_F(Leaving, ModelCardTellsFactsAndFiguresAndBreaksNoTable) {
  trained_.facts.emplace_back("data", "a|b\nc");
  ModelCard card{"made", {"`g.onnx`: the generator"}, "Input and output.\n", {}};
  EXPECT_THAT(text_of(card, trained_), HasSubstr("No validation of this checkpoint is known."));
  card.figures = {{"merit.total", "0.139"}};
  EXPECT_THAT(text_of(card, trained_), testing::Not(HasSubstr("nothing like")));
  card.unlike = {"response", "transverse"};
  const std::string text = text_of(card, trained_);
  for (const char* part :
       {"# made\n", "**The showers were nothing like the data**: response, transverse.\n",
        "- `g.onnx`: the generator\n", "| licence | CC0 |\n", "| data | a\\|b c |\n",
        "| merit.total | 0.139 |\n", "conv1"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

}  // namespace
}  // namespace troupe::pipeline
