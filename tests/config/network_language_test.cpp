#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

#include "config/layer_kinds.h"
#include "config/shipped.h"
#include "config/topology_identity.h"
#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

using model::NetworkDescription;
using testing::ElementsAre;
using testing::HasSubstr;

model::GanDescription zoo_model(const std::string& name, const std::string& schema = "lcd-fixed") {
  return parsed(
             fmt::format("model: {{zoo: {}}}\ndata: {{train: a.h5, schema: {}}}\n", name, schema))
      .topology.model.gan;
}

model::ParameterLayout layout_of(const NetworkDescription& network) {
  const model::NetworkShapes shapes = model::infer_shapes(network);
  EXPECT_TRUE(shapes.problems.empty());
  return model::layout_parameters(network, shapes);
}

// "KIND SHAPE" of every layer.
std::vector<std::string> shapes_of(const NetworkDescription& network) {
  const model::NetworkShapes shapes = model::infer_shapes(network);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const std::string kind = model::kind_name(network.layers[i].kind);
    if (kind == "convolution") texts.push_back(shapes.layers[i].text());
  }
  return texts;
}

TEST(Zoo, HoldsTheModelsThatAreShipped) {
  EXPECT_THAT(zoo_names(),
              ElementsAre("calo_unet_12", "calo_unet_25", "dcgan_mnist", "digits", "gan3d_12",
                          "gan3d_12_dense", "gan3d_25", "gan3d_51", "particle_12", "toy"));
  EXPECT_FALSE(zoo_text("gan3d_13").has_value());
}

TEST(Zoo, EmbeddedModelsAreTheFiles) {
  for (const std::string& name : zoo_names()) {
    EXPECT_EQ(*zoo_text(name), read_text(source_path("config/zoo/" + name + ".yaml")));
  }
}

TEST(Zoo, EveryModelOfShowersTrainsOnMadeOnes) {
  const std::map<std::string, std::string> data{
      {"gan3d_12", ", preprocessing: {power: 0.35}"},
      {"gan3d_12_dense", ", preprocessing: {power: 0.5, scale: 1000}"},
      {"gan3d_51", ", schema: lcd-angle"}};
  for (const std::string& name : zoo_names()) {
    if (name == "dcgan_mnist" || name == "digits") continue;  // pictures
    const auto more = data.find(name);
    EXPECT_EQ(message_of(parse(fmt::format("model: {{zoo: {}}}\ndata: {{train: synthetic{}}}\n",
                                           name, more == data.end() ? "" : more->second))),
              "");
  }
}

TEST(Zoo, DcganHasTheShapesOfItsStudy) {
  const auto read = parse(
      "model: {zoo: dcgan_mnist}\ndata: {train: images.idx, schema: idx}\n"
      "actors: {validator: {every: none}}\n");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const model::GanDescription& gan = read->topology.model.gan;
  EXPECT_EQ(layout_of(gan.generator).weights_size, 100 * 12'544 + 2 * 12'544 + 25 * 128 * 256 +
                                                       2 * 128 + 25 * 64 * 128 + 2 * 64 + 25 * 64);
  EXPECT_EQ(layout_of(gan.discriminator).size(),
            25 * 64 + 64 + 25 * 64 * 128 + 128 + 7 * 7 * 128 + 1);
  EXPECT_THAT(shapes_of(gan.discriminator), ElementsAre("14x14x64", "7x7x128"));
}

// Totals of the reference implementations.
TEST(Zoo, Gan3d25HasTheParametersOfTheReference) {
  const model::GanDescription gan = zoo_model("gan3d_25");
  EXPECT_EQ(layout_of(gan.generator).size(), 872'948);
  EXPECT_EQ(layout_of(gan.generator).weights_size, 872'808);
  EXPECT_EQ(layout_of(gan.discriminator).size(), 73'450);
  EXPECT_EQ(layout_of(gan.discriminator).weights_size, 73'402);
  EXPECT_THAT(shapes_of(gan.generator),
              ElementsAre("7x7x8x64", "13x14x9x6", "26x26x26x6", "25x25x25x1"));
  EXPECT_THAT(shapes_of(gan.discriminator),
              ElementsAre("25x25x25x32", "25x25x25x8", "25x25x25x8", "23x23x23x8"));
}

TEST(Zoo, Gan3d51HasTheParametersOfTheReference) {
  const model::GanDescription gan = zoo_model("gan3d_51", "lcd-angle");
  EXPECT_EQ(layout_of(gan.generator).size(), 1'365'047);
  EXPECT_EQ(layout_of(gan.generator).weights_size, 1'364'983);
  EXPECT_EQ(layout_of(gan.discriminator).size(), 87'402);
  EXPECT_EQ(layout_of(gan.discriminator).weights_size, 87'354);
  EXPECT_THAT(shapes_of(gan.generator),
              ElementsAre("49x49x41x8", "50x50x38x6", "51x51x35x6", "52x52x32x6", "52x52x28x6",
                          "52x52x26x6", "51x51x25x1"));
  EXPECT_THAT(shapes_of(gan.discriminator),
              ElementsAre("51x51x25x16", "47x46x22x8", "43x41x19x8", "39x36x14x8"));
  EXPECT_EQ(gan.losses.size(), 4u);
}

TEST(Zoo, ToyHasEveryKindOfStateInAtMostAHundredParameters) {
  const model::GanDescription gan = zoo_model("toy");
  const model::ParameterLayout generator = layout_of(gan.generator);
  const model::ParameterLayout discriminator = layout_of(gan.discriminator);
  EXPECT_LE(generator.size() + discriminator.size(), 100);
  EXPECT_GT(generator.moving_size, 0);
  EXPECT_GT(discriminator.moving_size, 0);
  bool has_dropout = false;
  for (const model::Layer& layer : gan.discriminator.layers) {
    has_dropout |= std::holds_alternative<model::Dropout>(layer.kind);
  }
  EXPECT_TRUE(has_dropout);
}

// Multiplications and additions of the convolutions and dense layers for one event, in millions.
double forward_mmac(const NetworkDescription& network) {
  const model::NetworkShapes shapes = model::infer_shapes(network);
  double operations = 0.0;
  for (const model::ParameterTensor& tensor : layout_of(network).weights) {
    if (tensor.role != model::ParameterRole::kKernel) continue;
    const auto layer = static_cast<std::size_t>(tensor.layer);
    operations += static_cast<double>(tensor.size * shapes.layers[layer].cells());
  }
  return operations / 1e6;
}

TEST(Zoo, WorkPerEventIsThatOfThePublishedTables) {
  EXPECT_NEAR(forward_mmac(zoo_model("gan3d_25").generator), 255.7, 1.0);
  EXPECT_NEAR(forward_mmac(zoo_model("gan3d_51", "lcd-angle").generator), 3061.0, 2.0);
  EXPECT_NEAR(forward_mmac(zoo_model("gan3d_51", "lcd-angle").discriminator), 1895.5, 2.0);
  const auto quickstart = load_topology(shipped_topologies()[0]);
  ASSERT_TRUE(quickstart.ok()) << message_of(quickstart);
  ASSERT_EQ(quickstart->topology.model.zoo, "gan3d_12");
  EXPECT_LT(forward_mmac(quickstart->topology.model.gan.generator), 10.0);
  EXPECT_LT(forward_mmac(quickstart->topology.model.gan.discriminator), 10.0);
}

TEST(ModelLanguage, WordsAreThoseOfTheModel) {
  EXPECT_EQ(layer_kinds().size(), std::variant_size_v<model::LayerKind>);
  for (const KindEntry& kind : kind_table()) {
    const YamlValue value = YamlValue::map();
    Problems problems;
    Origins origins;
    Reader reader(problems, origins, "");
    model::Layer layer;
    kind.codec->read(value, layer, reader);
    EXPECT_EQ(model::kind_name(layer.kind), kind.word);
    EXPECT_EQ(&kind_entry(layer.kind), &kind);
  }
}

std::string with_layers(const std::string& layers) {
  return "model:\n  zoo: toy\n  discriminator:\n    layers:\n" + layers +
         "    outputs: [generation, auxiliary, ecal]\ndata: {train: a.h5}\n";
}

TEST(ModelLanguage, ShapeProblemsStandAtTheirLayers) {
  const std::string message = message_of(parse(with_layers(R"(
      - convolution: {filters: 2, kernel: [5, 2, 2]}
      - sum: {name: ecal, input: input}
      - convolution: {filters: 2, kernel: [2, 2, 2], input: inptu}
      - dense: {units: 1, name: generation}
      - dense: {units: 1, name: auxiliary, input: generation}
)")));
  EXPECT_THAT(message, HasSubstr("t.yaml:6:9: model.discriminator.layers.0: layer convolution1 "
                                 "(convolution): kernel 5 along x does not fit into 4 cells of "
                                 "4x4x4x1; pad by 1"));
  EXPECT_THAT(message, HasSubstr("t.yaml:8:9: model.discriminator.layers.2: "));
  EXPECT_THAT(message, HasSubstr("did you mean input?"));
}

TEST(ModelLanguage, PoolsStepByTheirSizeUnlessToldOtherwise) {
  const std::string rest =
      "      - sum: {name: ecal, input: input}\n"
      "      - dense: {units: 1, input: pool}\n"
      "      - activation: {kind: sigmoid, name: generation}\n"
      "      - dense: {units: 1, name: auxiliary, input: generation}\n";
  const auto read =
      parse(with_layers("      - max_pool: {size: [3, 3, 3], stride: [2, 1, 1], padding: same}\n"
                        "      - average_pool: {size: [2, 2, 3], name: pool}\n" +
                        rest));
  ASSERT_TRUE(read.ok()) << read.error().message;
  const model::NetworkShapes shapes = model::infer_shapes(read->topology.model.gan.discriminator);
  EXPECT_EQ(shapes.layers[0].text(), "2x4x4x1");
  EXPECT_EQ(shapes.layers[1].text(), "1x2x1x1");
  EXPECT_EQ(topology_hash(parsed(print_topology(*read)).topology), topology_hash(read->topology));
  EXPECT_THAT(message_of(parse(
                  with_layers("      - average_pool: {size: [2, 5, 2], name: pool}\n" + rest))),
              HasSubstr("t.yaml:5:9: model.discriminator.layers.0: layer pool (average_pool): a "
                        "window of 5 along y does not fit into 4 cells of 4x4x4x1"));
}

TEST(ModelLanguage, PadsAndCropsTakeANumberOrTwoForEachAxis) {
  const std::string rest =
      "      - sum: {name: ecal, input: input}\n"
      "      - dense: {units: 1, input: cut}\n"
      "      - activation: {kind: sigmoid, name: generation}\n"
      "      - dense: {units: 1, name: auxiliary, input: generation}\n";
  const auto with = [&](const std::string& pad) {
    return parse(with_layers("      - pad: " + pad +
                             "\n      - crop: {amount: [1, [2, 0], [0, 1]], name: cut}\n" + rest));
  };
  const auto read = with("[1, [0, 2]]");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const model::NetworkShapes shapes = model::infer_shapes(read->topology.model.gan.discriminator);
  EXPECT_EQ(shapes.layers[0].text(), "6x6x4x1");
  EXPECT_EQ(shapes.layers[1].text(), "4x4x3x1");
  const std::string printed = print_topology(*read);
  EXPECT_THAT(printed, HasSubstr("amount: [1, [0, 2], 0]"));
  EXPECT_THAT(printed, HasSubstr("amount: [1, [2, 0], [0, 1]]"));
  EXPECT_EQ(topology_hash(parsed(printed).topology), topology_hash(read->topology));
  // Two that are equal are one.
  const auto one = with("[1, 2, 0]"), two = with("[[1, 1], [2, 2]]");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_THAT(print_topology(*two), HasSubstr("amount: [1, 2, 0]"));
  EXPECT_EQ(topology_hash(one->topology), topology_hash(two->topology));
  EXPECT_NE(topology_hash(one->topology), topology_hash(read->topology));
  EXPECT_THAT(message_of(with("[[1, 2, 3]]")),
              HasSubstr("t.yaml:5:15: model.discriminator.layers.0.pad.amount.0: expected a list "
                        "of 2, each a whole number from 0 to 64; found a list with 3"));
  EXPECT_THAT(message_of(with("[[1, 65]]")),
              HasSubstr("pad.amount.0.1: expected a whole number from 0 to 64"));
  EXPECT_THAT(message_of(with("[few]")),
              HasSubstr("pad.amount.0: expected a whole number from 0 to 64"));
}

TEST(ModelLanguage, MistakesInLayersAreNamed) {
  const std::string message = message_of(parse(with_layers(R"(
      - dens: 64
      - dense: {units: 64, unit: 3}
      - {dense: 3, pad: 2}
      - pad
      - pad: []
      - dense: 0
      - dense: {units: 3, name: a/b}
      - activation: rely
      - activation: {kind: relu, slope: 0.1}
      - batch_norm: 3
      - reshape: []
      - [1, 2]
)")));
  for (const char* part : {
           "6:9: model.discriminator.layers.0: unknown kind of layer \"dens\"; did you mean "
           "\"dense\"?",
           "7:28: model.discriminator.layers.1.dense: unknown key \"unit\"; did you mean "
           "\"units\"?",
           "8:9: model.discriminator.layers.2: a layer has one kind, with its options inside",
           "9:9: model.discriminator.layers.3.pad: \"amount\" is missing",
           "10:14: model.discriminator.layers.4.pad.amount: expected a list of at least 1",
           "11:16: model.discriminator.layers.5.dense.units: expected a whole number from 1",
           "12:33: model.discriminator.layers.6.dense.name: expected a name of letters",
           "13:21: model.discriminator.layers.7.activation.kind: expected one of linear, relu",
           "14:34: model.discriminator.layers.8.activation: slope acts only with kind: leaky_relu",
           "15:21: model.discriminator.layers.9.batch_norm: expected a section",
           "16:18: model.discriminator.layers.10.reshape.to: expected a list of at least 1",
           "17:9: model.discriminator.layers.11: expected a layer such as",
       }) {
    EXPECT_THAT(message, HasSubstr(std::string("t.yaml:") + part));
  }
}

TEST(ModelLanguage, NetworksMustFitEachOtherAndTheLosses) {
  const auto refusal = [](const std::string& model) {
    return message_of(parse("model: {zoo: toy, " + model + "}\ndata: {train: a.h5}\n"));
  };
  const std::string maker = "the generator's layer activation2 (activation) makes ";
  EXPECT_THAT(refusal("discriminator: {input: [4, 4, 5, 1]}"),
              HasSubstr("t.yaml:1:42: model.discriminator.input: " + maker +
                        "4x4x4 cells, but the discriminator reads 4x4x5 cells: 4 and 5 along z"));
  EXPECT_THAT(refusal("discriminator: {input: [4, 4, 4, 2]}"),
              HasSubstr(maker + "1 channel, but the discriminator reads 2 channels"));
  EXPECT_THAT(
      refusal("discriminator: {input: [4, 5, 4, 2]}"),
      HasSubstr(maker + "the shape 4x4x4x1, but the discriminator reads the shape 4x5x4x2"));
  // The layer in the zoo is right, and the change to the one above it is not.
  EXPECT_THAT(
      message_of(parse(kLeast, {"model.generator.layers.4.upsample=[2, 2, 3]"})),
      HasSubstr("--set model.generator.layers.4.upsample=[2, 2, 3]: "
                "model.generator.layers.6: " +
                maker + "4x4x6 cells, but the discriminator reads 4x4x4 cells: 6 and 4 along z"));
  EXPECT_THAT(message_of(parse("model: {zoo: toy, losses: {energy: {kind: mae, target: energy}}}\n"
                               "data: {train: a.h5}\n")),
              HasSubstr("model.losses.energy: \"energy\" is no output of the discriminator"));
  EXPECT_THAT(message_of(parse(kLeast, {"model.losses={generation: {kind: bce, target: label}}"})),
              HasSubstr("output \"auxiliary\" of the discriminator has no loss"));
}

TEST(ModelLanguage, NumbersBeyondAnyMachineAreRefused) {
  const std::string huge = message_of(parse(kLeast, {"model.generator.layers.0.dense=16777216"}));
  EXPECT_THAT(huge, HasSubstr("a reshape keeps their number"));
  std::string layers = "      - upsample: [64, 64, 64]\n      - upsample: [64, 64, 64]\n";
  for (int i = 0; i < 5; ++i) layers += layers;
  EXPECT_THAT(message_of(parse(with_layers(layers))), HasSubstr("makes more than"));
  EXPECT_THAT(message_of(parse(with_layers("      - upsample: [64, 64, 64]\n"
                                           "      - upsample: [32, 32, 32]\n"
                                           "      - sum: {name: ecal}\n"),
                               {"model.discriminator.outputs=[ecal]"})),
              HasSubstr("makes more than 268435456 values for one event"));
  // Several images of an event are one long vector.
  const std::string input = "model.discriminator.input=";
  EXPECT_THAT(message_of(parse(kLeast, {input + "[72285, 1, 1, 1]"})), HasSubstr("72285x1x1"));
  EXPECT_THAT(message_of(parse(kLeast, {input + "[16777216, 16777216, 16777216, 1]"})),
              HasSubstr("more than 2^36 cells"));
}

}  // namespace
}  // namespace troupe::config
