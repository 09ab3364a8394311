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

#include "pipeline/leaving/model_card.h"
#include "pipeline/leaving/numpy_archive.h"
#include "tests/pipeline/leaving_fixture.h"
#include "tests/support/fails_with.h"

namespace troupe::pipeline {
namespace {

using model::layer;
using runtime::ErrorKind;
using testing::ElementsAre;
using testing::HasSubstr;

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
  padded.pads = model::Margins{{1, 2, 0}, {0, 2, 0}};
  padded.dilation = {2, 1, 1};
  padded.groups = 2;
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
  EXPECT_THAT(found.at("pads"), ElementsAre(1, 2, 0, 0, 2, 0));
  EXPECT_THAT(found.at("output_padding"), ElementsAre(1, 2, 0));
  EXPECT_THAT(found.at("dilations"), ElementsAre(2, 1, 1));
}

TEST_F(Leaving, OnnxPadsAndCropsHaveBothEndsOfTheirAxes) {
  gan_.task = model::Task::kSupervised;
  model::NetworkDescription& network = gan_.discriminator;
  network = {"network", model::Shape{{7, 5, 1}, 2, 2}, {}, {}};
  network.layers = {layer("wide", model::Pad{{{1, 0, 0}, {0, 2, 0}}}),
                    layer("cut", model::Crop{{{3, 0, 0}, {1, 2, 0}}}),
                    layer("kind", model::Dense{2})};
  state_.discriminator = filled(network, 3);
  onnx::ModelProto model = onnx(OnnxFlavour::k3dgan);
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  EXPECT_NO_THROW(onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                                     {true, 1, true}));
  std::map<std::string, std::vector<std::int64_t>> numbers;
  for (const auto& tensor : model.graph().initializer()) {
    if (tensor.data_type() != onnx::TensorProto::INT64) continue;
    numbers[tensor.name()] = onnx::ParseData<std::int64_t>(&tensor);
  }
  EXPECT_THAT(numbers.at("wide/pads"), ElementsAre(0, 0, 1, 0, 0, 0, 0, 0, 2, 0));
  EXPECT_THAT(numbers.at("cut/output_begin"), ElementsAre(3, 0, 0));
  EXPECT_THAT(numbers.at("cut/output_end"), ElementsAre(7, 5, 1));
}

TEST_F(Leaving, OnnxConvolutionsHaveTheStrideBesideTheDilation) {
  gan_.task = model::Task::kSupervised;
  model::NetworkDescription& network = gan_.discriminator;
  model::Convolution both = model::convolution(2, {3, 2, 1}, model::Padding::kSame);
  both.stride = {2, 1, 1};
  both.dilation = {2, 3, 1};
  network = {"network", model::Shape{{7, 5, 1}, 2, 2}, {}, {}};
  network.layers = {layer("both", both), layer("kind", model::Dense{2})};
  state_.discriminator = filled(network, 3);
  onnx::ModelProto model = onnx(OnnxFlavour::k3dgan);
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  EXPECT_NO_THROW(onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                                     {true, 1, true}));
  std::map<std::string, std::vector<std::int64_t>> found;
  for (const auto& node : model.graph().node()) {
    if (node.op_type() != "Conv") continue;
    for (const auto& attribute : node.attribute()) {
      found[attribute.name()].assign(attribute.ints().begin(), attribute.ints().end());
    }
  }
  EXPECT_THAT(found.at("strides"), ElementsAre(2, 1, 1));
  EXPECT_THAT(found.at("dilations"), ElementsAre(2, 3, 1));
  EXPECT_THAT(found.at("pads"), ElementsAre(2, 1, 0, 2, 2, 0));
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
