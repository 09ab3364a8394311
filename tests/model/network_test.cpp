#include "model/network.h"

#include <limits>
#include <set>
#include <utility>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/example_networks.h"

namespace troupe::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> problems_of(const NetworkDescription& network) {
  std::vector<std::string> messages;
  for (const NetworkProblem& problem : infer_shapes(network).problems) {
    messages.push_back(problem.message);
  }
  return messages;
}

std::vector<std::string> problems_of(Shape input, std::vector<Layer> layers,
                                     std::vector<std::string> outputs = {}) {
  return problems_of({"n", input, std::move(layers), std::move(outputs)});
}

// The message of the only layer, or "" for none.
std::string problem_of(Shape input, LayerKind kind) {
  const std::vector<std::string> messages = problems_of(input, {layer("a", std::move(kind))});
  if (messages.empty()) return "";
  EXPECT_EQ(messages.size(), 1u);
  return messages.front();
}

const Shape kCube = Shape::image({5, 5, 5}, 2);
const Shape kFlat{{7, 6, 1}, 2, 2};
const Shape kFeatures = Shape::features(10);

TEST(Network, LayersReadTheOneBeforeOrTheOneTheyName) {
  const NetworkShapes shapes = infer_shapes(small_discriminator());
  EXPECT_THAT(shapes.inputs, ElementsAre(-1, 0, 1, 2, 3, 4, 5, 6, 5, -1, 9, 9, 9));
  EXPECT_THAT(shapes.outputs, ElementsAre(7, 8, 10, 11, 12));
  EXPECT_THAT(infer_shapes(flat_images()).outputs, ElementsAre(6));
}

TEST(Network, KernelThatDoesNotFitIsToldHowMuchPaddingItNeeds) {
  EXPECT_EQ(
      problem_of(kCube, convolution(4, {3, 3, 8})),
      "layer a (convolution): kernel 8 along z does not fit into 5 cells of 5x5x5x2; pad by 2 "
      "or use a smaller kernel");
  EXPECT_EQ(problem_of(kCube, convolution(4, {3, 3, 5})), "");
  EXPECT_EQ(problem_of(kCube, convolution(4, {3, 3, 8}, Padding::kSame)), "");
}

TEST(Network, NumbersThatCannotBeAreRefused) {
  const double kNaN = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(problem_of(kFeatures, Dense{0}), HasSubstr("units is 0, it must be 1 or more"));
  EXPECT_THAT(problem_of(kCube, convolution(0, {1, 1, 1})), HasSubstr("filters is 0"));
  EXPECT_THAT(problem_of(kCube, convolution(1, {1, -3, 1})), HasSubstr("kernel along y is -3"));
  EXPECT_THAT(problem_of(kCube, Pad{{{0, -1, 0}}}), HasSubstr("amount along y is -1"));
  EXPECT_THAT(problem_of(kCube, Pad{{{}, {0, -1, 0}}}), HasSubstr("amount behind along y is -1"));
  EXPECT_THAT(problem_of(kCube, Upsample{{1, 1, 0}}), HasSubstr("factor along z is 0"));
  EXPECT_THAT(problem_of(kCube, AveragePool{{0, 1, 1}}), HasSubstr("size along x is 0"));
  EXPECT_THAT(problem_of(kCube, AveragePool{{1, 6, 1}}), HasSubstr("window of 6 along y"));
  EXPECT_THAT(problem_of(kCube, Dropout{1.0}), HasSubstr("rate is 1, it must be in [0, 1)"));
  EXPECT_THAT(problem_of(kCube, Dropout{kNaN}), HasSubstr("rate is nan"));
  EXPECT_THAT(problem_of(kCube, Power{0.0}), HasSubstr("exponent is 0, it must be more than 0"));
  EXPECT_THAT(problem_of(kCube, BatchNorm{1.5, 1e-6}), HasSubstr("momentum is 1.5"));
  EXPECT_THAT(problem_of(kCube, BatchNorm{0.9, 0.0}), HasSubstr("epsilon is 0"));
  EXPECT_THAT(problem_of(kCube, Activation{ActivationKind::kLeakyRelu, -0.1}),
              HasSubstr("slope is -0.1"));
  EXPECT_EQ(problem_of(kCube, Activation{ActivationKind::kRelu, -0.1}), "");
}

TEST(Network, LayersThatNeedAnotherKindOfInputSayWhich) {
  EXPECT_THAT(problem_of(kFeatures, convolution(1, {1, 1, 1})),
              HasSubstr("reads an image, but the network's input gives 10 features"));
  EXPECT_THAT(problem_of(kCube, Angle{}), HasSubstr("one channel, but the network's input gives "
                                                    "5x5x5x2"));
  EXPECT_THAT(problem_of(Shape{{7, 6, 1}, 1, 2}, Angle{}), HasSubstr("three axes"));
  EXPECT_EQ(problem_of(Shape::image({5, 5, 5}, 1), Angle{}), "");
  EXPECT_THAT(problem_of(kCube, Reshape{Shape::features(100)}),
              HasSubstr("100 has 100 elements but the network's input gives 250 (5x5x5x2)"));
  EXPECT_THAT(problem_of(kCube, Reshape{Shape{{250, 1, 1}, 1, 4}}),
              HasSubstr("to: an image has 1 to 3 axes, not 4"));
  EXPECT_THAT(problem_of(kFlat, convolution(1, {2, 2, 2})),
              HasSubstr("kernel is 2 along z, but the network's input gives an image without this "
                        "axis (7x6x2); it must be 1"));
  EXPECT_THAT(problem_of(kFlat, Pad{{{0, 0, 1}}}), HasSubstr("it must be 0"));
  EXPECT_THAT(problem_of(kFlat, Upsample{{1, 1, 2}}), HasSubstr("it must be 1"));
}

TEST(Network, FurtherKindsSayWhyTheirGeometryCannotBe) {
  Convolution convolution{4, {3, 3, 3}};
  convolution.stride = {2, 1, 2};
  convolution.dilation = {1, 2, 1};
  EXPECT_EQ(problem_of(kCube, convolution), "");
  convolution.dilation = {1, 1, 3};
  EXPECT_THAT(problem_of(kCube, convolution),
              HasSubstr("kernel 3 along z with dilation 3 does not fit into 5 cells of 5x5x5x2"));
  convolution = {4096, {2, 2, 2}, Padding::kSame};
  convolution.dilation = {64, 64, 64};
  EXPECT_THAT(
      problem_of(kCube, convolution),
      HasSubstr("its stride or dilation takes more than 4294967296 numbers of 5x5x5x2 apart"));
  convolution = {4, {3, 3, 3}};
  convolution.stride = {1, 5000, 1};
  EXPECT_THAT(problem_of(kCube, convolution), HasSubstr("dilation of 5000 along y, 4096"));
  convolution = {4, {3, 3, 3}};
  convolution.groups = 3;
  EXPECT_THAT(problem_of(kCube, convolution), HasSubstr("4 filters cannot be cut into 3 groups"));
  convolution.filters = 3;
  EXPECT_THAT(problem_of(kCube, convolution),
              HasSubstr("the network's input gives 5x5x5x2, and 2 channels cannot be cut into 3 "
                        "groups"));
  convolution = {4, {3, 3, 1}};
  convolution.stride = {1, 1, 2};
  EXPECT_THAT(problem_of(kFlat, convolution), HasSubstr("stride is 2 along z"));
  EXPECT_THAT(problem_of(kFeatures, TransposedConvolution{1}), HasSubstr("reads an image"));
  TransposedConvolution transposed{1, {3, 3, 3}, {2, 2, 2}};
  transposed.output_padding = {0, 2, 0};
  EXPECT_THAT(problem_of(kCube, transposed),
              HasSubstr("output_padding is 2 along y, it must be less than the stride, 2"));
  transposed.output_padding = {0, 1, 0};
  EXPECT_EQ(problem_of(kCube, transposed), "");
  transposed.padding = Padding::kSame;
  EXPECT_THAT(problem_of(kCube, transposed), HasSubstr("has padding: same"));
  transposed.padding = Padding::kValid;
  transposed.pads = Margins{{1, 1, 6}};
  EXPECT_THAT(problem_of(kCube, transposed),
              HasSubstr("pads of 6 along z leave nothing of what 5 cells of 5x5x5x2 become"));
  transposed.pads = Margins{{1, 1, 2}, {1, 1, 9}};
  EXPECT_THAT(problem_of(kCube, transposed), HasSubstr("pads of [2, 9] along z leave nothing"));
  transposed.pads.reset();
  transposed.groups = 2;
  EXPECT_THAT(problem_of(kCube, transposed), HasSubstr("1 filters cannot be cut into 2 groups"));
  transposed.groups = 1;
  transposed.dilation = {1, 1, 5000};
  EXPECT_THAT(problem_of(kCube, transposed),
              HasSubstr("a stride or dilation of 5000 along z, 4096 is possible"));
  transposed.dilation = {1, 1, 1};
  transposed.kernel[2] = transposed.stride[2] = 1;
  transposed.pads = Margins{{1, 1, 1}};
  EXPECT_THAT(problem_of(kFlat, transposed), HasSubstr("pads is 1 along z"));
  EXPECT_THAT(problem_of(kCube, Crop{{{0, 3, 0}}}), HasSubstr("3 behind along y leave nothing"));
  EXPECT_THAT(
      problem_of(kCube, Crop{{{0, 0, 1}, {0, 0, 4}}}),
      HasSubstr("1 taken away before and 4 behind along z leave nothing of 5 cells of 5x5x5x2"));
  EXPECT_EQ(problem_of(kCube, Crop{{{0, 0, 1}, {0, 0, 3}}}), "");
  EXPECT_THAT(problem_of(kFlat, Pad{{{0, 0, 0}, {1, 0, 2}}}), HasSubstr("behind is 2 along z"));
  EXPECT_THAT(problem_of(kCube, MaxPool{{1, 1, 6}}),
              HasSubstr("a window of 6 along z does not fit into 5 cells of 5x5x5x2"));
  EXPECT_EQ(problem_of(kCube, MaxPool{{1, 1, 6}, {}, Padding::kSame}), "");
  EXPECT_THAT(problem_of(kCube, MaxPool{{2, 2, 2}, Extent{1, 0, 1}}),
              HasSubstr("stride along y is 0, it must be 1 or more"));
  EXPECT_THAT(problem_of(kFlat, AveragePool{{2, 2, 1}, Extent{1, 1, 2}}),
              HasSubstr("stride is 2 along z, but the network's input gives an image without this "
                        "axis (7x6x2); it must be 1"));
  EXPECT_THAT(problem_of(kFeatures, GlobalMaxPool{}), HasSubstr("reads an image"));
  EXPECT_THAT(problem_of(kCube, GroupNorm{3}), HasSubstr("cannot be cut into 3 groups"));
  EXPECT_THAT(problem_of(kCube, Permute{{Axis::kX, Axis::kY, Axis::kChannels}}),
              HasSubstr("must name each of the 4 axes"));
  EXPECT_THAT(problem_of(kFlat, Slice{Axis::kZ, 0, 1}), HasSubstr("means the axis z"));
  EXPECT_THAT(problem_of(kCube, Slice{Axis::kX, 4, 2}),
              HasSubstr("2 from 4 on are more than the 5 along x of 5x5x5x2, which the network's "
                        "input gives"));
  EXPECT_THAT(problem_of(kCube, Embedding{10, 4}), HasSubstr("reads the number of a class"));
  EXPECT_THAT(problem_of(kCube, Attention{1}), HasSubstr("cannot be cut into 3 queries"));
  EXPECT_THAT(problem_of(Shape::image({17, 17, 17}, 3), Attention{1}),
              HasSubstr("gives 17x17x17x3, which has 4913 cells; it looks at 4096 or fewer"));
}

TEST(Network, LayersThatJoinOthersSayWhichDoNotFit) {
  const auto problems_with = [](LayerKind kind) {
    return problems_of(kCube,
                       {layer("half", MaxPool{{2, 2, 2}}), layer("join", std::move(kind), "input")},
                       {"half", "join"});
  };
  EXPECT_THAT(
      problems_with(Add{{"half"}}),
      ElementsAre(HasSubstr("layer join (add): the network's input gives 5x5x5 cells, but layer "
                            "half gives 2x2x2 cells: 5 and 2 along x, 5 and 2 along y, 5 and 2 "
                            "along z; they must be equal, or layer half 2 features")));
  EXPECT_THAT(problems_with(Multiply{"half"}), ElementsAre(HasSubstr("they must be equal")));
  EXPECT_THAT(problems_with(Concatenate{{"half"}}),
              ElementsAre(HasSubstr("they must be equal but along channels")));
  EXPECT_THAT(problems_of(kCube,
                          {layer("more", Convolution{.filters = 3, .kernel = {1, 1, 2}}),
                           layer("join", Concatenate{{"more"}}, "input")},
                          {"more", "join"}),
              ElementsAre(HasSubstr("gives 5x5x5 cells, but layer more gives 5x5x4 cells: 5 and 4 "
                                    "along z; they must be equal but along channels")));
  EXPECT_THAT(problems_with(Add{}), ElementsAre(HasSubstr("with names no layer")));
  EXPECT_THAT(problems_with(Multiply{"hlaf"}), ElementsAre(HasSubstr("did you mean half?")));
  EXPECT_THAT(problems_with(Multiply{"join"}), ElementsAre(HasSubstr("which is itself")));
}

// Those of a layer that reads the input, beside one by the name of "other".
std::vector<std::string> problems_beside_another(Shape input, LayerKind kind) {
  return problems_of(input, {layer("other", Dense{3}), layer("a", std::move(kind), "input")},
                     {"other", "a"});
}

TEST(Network, EveryKindRefusesAShapeThatItCannotTakeByNameOrTakesAllShapes) {
  Convolution flat{1, {3, 3, 1}, Padding::kSame};
  flat.stride = {1, 1, 2};
  const std::vector<std::pair<Shape, LayerKind>> refused{
      {kCube, Dense{std::int64_t{1} << 28}},
      {kCube, convolution(1, {1, 6, 1})},
      {kFlat, flat},
      {kFlat, TransposedConvolution{1, {2, 2, 2}}},
      {kFlat, Pad{{{0, 0, 1}}}},
      {kCube, Crop{{{0, 3, 0}}}},
      {kFlat, Upsample{{1, 1, 2}}},
      {kCube, AveragePool{{1, 6, 1}}},
      {kCube, MaxPool{{1, 1, 6}}},
      {kFeatures, GlobalAveragePool{}},
      {kFeatures, GlobalMaxPool{}},
      {kFeatures, InstanceNorm{}},
      {kCube, GroupNorm{3}},
      {kCube, Reshape{Shape::features(100)}},
      {kFlat, Permute{{Axis::kX, Axis::kY, Axis::kZ, Axis::kChannels}}},
      {kCube, Slice{Axis::kChannels, 1, 2}},
      {kCube, Add{{"other"}}},
      {kCube, Multiply{"other"}},
      {kCube, Concatenate{{"other"}}},
      {kCube, Embedding{3, 2}},
      {kCube, Attention{1}},
      {kCube, Angle{}}};
  std::set<std::string> kinds;
  for (const auto& [input, kind] : refused) {
    kinds.insert(kind_name(kind));
    EXPECT_THAT(problems_beside_another(input, kind), ElementsAre(HasSubstr(input.text())))
        << kind_name(kind);
  }
  for (const LayerKind& kind :
       std::vector<LayerKind>{BatchNorm{}, LayerNorm{}, Dropout{}, Activation{}, Softmax{}, Power{},
                              Flatten{}, Sum{}, Bins{}}) {
    EXPECT_TRUE(kinds.insert(kind_name(kind)).second) << kind_name(kind);
    for (const Shape& input : {kCube, kFlat, Shape{{4, 1, 1}, 2, 1}, kFeatures}) {
      EXPECT_THAT(problems_beside_another(input, kind), IsEmpty()) << kind_name(kind);
    }
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<LayerKind>) << testing::PrintToString(kinds);
}

// A layer that only another one's `with` names is used.
TEST(Network, SkippedConnectionsCountAsReaders) {
  EXPECT_THAT(problems_of(kCube, {layer("conv", convolution(2, {3, 3, 3}, Padding::kSame)),
                                  layer("sum", Add{{"conv"}}, "input")}),
              IsEmpty());
}

TEST(Network, StridesGiveTheExtentsOfKeras) {
  const auto shape_of = [](std::int64_t cells, LayerKind kind) {
    return infer_shapes({"n", Shape{{cells, 1, 1}, 2, 1}, {layer("a", std::move(kind))}, {}})
        .layers.front()
        .space[0];
  };
  const auto convolved = [&](std::int64_t cells, std::int64_t kernel, std::int64_t stride,
                             Padding padding) {
    Convolution convolution{1, {kernel, 1, 1}, padding};
    convolution.stride = {stride, 1, 1};
    return shape_of(cells, convolution);
  };
  EXPECT_EQ(convolved(28, 5, 2, Padding::kSame), 14);
  EXPECT_EQ(convolved(29, 5, 2, Padding::kSame), 15);
  EXPECT_EQ(convolved(28, 5, 2, Padding::kValid), 12);
  EXPECT_EQ(convolved(7, 2, 3, Padding::kValid), 2);
  const Convolution both{1, {3, 1, 1}, Padding::kValid, true, {}, {2, 1, 1}, {4, 1, 1}};
  EXPECT_EQ(shape_of(28, both), 10);
  const auto pooled = [&](std::int64_t size, std::int64_t stride, Padding padding) {
    return shape_of(7, AveragePool{{size, 1, 1}, Extent{stride, 1, 1}, padding});
  };
  EXPECT_EQ(pooled(3, 2, Padding::kSame), 4);
  EXPECT_EQ(pooled(3, 2, Padding::kValid), 3);
  EXPECT_EQ(pooled(9, 1, Padding::kSame), 7);
  EXPECT_EQ(shape_of(7, MaxPool{{3, 1, 1}}), 2);
  EXPECT_EQ(shape_of(7, MaxPool{{3, 1, 1}, {}, Padding::kSame}), 3);
  const auto transposed = [&](std::int64_t kernel, std::int64_t stride, Padding padding) {
    return shape_of(7, TransposedConvolution{1, {kernel, 1, 1}, {stride, 1, 1}, padding});
  };
  EXPECT_EQ(transposed(5, 2, Padding::kSame), 14);
  EXPECT_EQ(transposed(5, 2, Padding::kValid), 17);
  EXPECT_EQ(transposed(2, 3, Padding::kValid), 21);
  EXPECT_EQ(transposed(5, 1, Padding::kValid), 11);
  // The extents of PyTorch.
  TransposedConvolution padded{1, {3, 1, 1}, {2, 1, 1}};
  padded.pads = Margins{{1, 0, 0}};
  EXPECT_EQ(shape_of(7, padded), 13);
  padded.output_padding = {1, 0, 0};
  EXPECT_EQ(shape_of(7, padded), 14);
  padded.pads.reset();
  EXPECT_EQ(shape_of(7, padded), 16);
  padded.dilation = {3, 1, 1};
  EXPECT_EQ(shape_of(7, padded), 20);
  padded.pads = Margins{{1, 0, 0}, {2, 0, 0}};
  EXPECT_EQ(shape_of(7, padded), 17);
  // Those of Keras, whose kernel is the window.
  padded.pads.reset();
  padded.output_padding.reset();
  EXPECT_EQ(shape_of(7, padded), 7 * 2 + 7 - 2);
  padded.padding = Padding::kSame;
  EXPECT_EQ(shape_of(7, padded), 14);
}

TEST(Network, SizesThatOverflowAreRefusedBeforeTheyAreComputed) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(problem_of(kFeatures, Dense{huge}), HasSubstr("it must be 1099511627776 or less"));
  EXPECT_THAT(problem_of(kCube, Pad{{{huge / 2, 0, 0}}}), HasSubstr("or less"));
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_THAT(problem_of(kCube, Upsample{{large, large, large}}), HasSubstr("more than"));
  EXPECT_THAT(problem_of(kCube, Pad{{{large, large, large}}}), HasSubstr("more than"));
  EXPECT_THAT(problem_of(kFeatures, Dense{std::int64_t{1} << 32}),
              HasSubstr("kernel would have more than 4294967295 weights"));
  EXPECT_THAT(problems_of(Shape::image({large, large, 1}, 1), {layer("a", Sum{})}),
              ElementsAre(HasSubstr("the network's input: ")));
}

TEST(Network, EveryProblemIsFoundAtOnceAndLayersBehindAWrongOneAreSkipped) {
  EXPECT_THAT(problems_of(kCube,
                          {layer("a", convolution(0, {1, 1, 1})),
                           layer("b", convolution(2, {9, 9, 9})), layer("c", Dropout{2.0}),
                           layer("d", Upsample{{1, 1, 1}}, "c"), layer("e", Angle{}, "input")},
                          {"b", "d", "e"}),
              ElementsAre(HasSubstr("layer a (convolution): filters"),
                          HasSubstr("layer c (dropout): rate"), HasSubstr("layer e (angle)")));
}

TEST(Network, NamesThatCannotBeResolvedAreExplained) {
  EXPECT_THAT(problems_of(kFeatures, {layer("first", Dense{2}), layer("second", Dense{2}, "frist")},
                          {"first", "second"}),
              ElementsAre("layer second (dense): reads frist, which is no layer; did you mean "
                          "first?"));
  EXPECT_THAT(
      problems_of(kFeatures, {layer("a", Dense{2}, "b"), layer("b", Dense{2}, "b")}, {"a", "b"}),
      ElementsAre("layer a (dense): reads b, which stands below it; layers read only "
                  "layers above them",
                  "layer b (dense): reads b, which is itself; layers read only layers "
                  "above them"));
  EXPECT_THAT(problems_of(kFeatures, {layer("a", Dense{2}), layer("a", Dense{2})}),
              ElementsAre(HasSubstr("its name is taken by layer number 1")));
  EXPECT_THAT(problems_of(kFeatures, {layer("", Dense{2})}),
              ElementsAre("layer number 1 (dense): has no name"));
  EXPECT_THAT(problems_of(kFeatures, {layer("input", Dense{2})}),
              ElementsAre(HasSubstr("give the layer another name")));
  EXPECT_THAT(problems_of(kFeatures, {layer("a/b", Dense{2})}), ElementsAre(HasSubstr("no \"/\"")));
}

TEST(Network, ConditionsAreASecondInputOfTheNetworksThatHaveThem) {
  NetworkDescription network{
      "n",
      kFeatures,
      {layer("told", Dense{2}, "conditions"), layer("seen", Dense{2}, "input"),
       layer("all", Concatenate{{"told", "conditions"}})},
      {},
      {"energy", "angle", "eta"}};
  const NetworkShapes shapes = infer_shapes(network);
  EXPECT_THAT(shapes.problems, IsEmpty());
  EXPECT_EQ(shapes.layers.back(), Shape::features(7));
  EXPECT_EQ(layout_parameters(network, shapes).weights.front().shape,
            (std::vector<std::int64_t>{3, 2}));
  EXPECT_THAT(print_network(network, shapes), HasSubstr("conditions energy, angle, eta"));
  EXPECT_THAT(print_network(network, shapes), HasSubstr("seen, told, conditions"));
  network.layers.push_back(layer("conditions", Dense{2}));
  EXPECT_THAT(infer_shapes(network).problems.front().message,
              HasSubstr("\"conditions\" means the network's conditions"));
  network.layers.pop_back();
  network.conditions.clear();
  EXPECT_THAT(infer_shapes(network).problems.front().message,
              HasSubstr("reads conditions, which is no layer"));
}

TEST(Network, ColumnsAreAThirdInputAndSomeLayerReadsThem) {
  NetworkDescription network{
      "n", kFeatures, {layer("seen", Dense{2}), layer("all", Concatenate{{"columns"}})},
      {},  {},        {"leak", "depth"}};
  EXPECT_THAT(infer_shapes(network).problems, IsEmpty());
  EXPECT_EQ(infer_shapes(network).layers.back(), Shape::features(4));
  EXPECT_THAT(print_network(network, infer_shapes(network)), HasSubstr("columns leak, depth"));
  network.layers.pop_back();
  EXPECT_THAT(infer_shapes(network).problems.front().message,
              HasSubstr("no layer reads the network's columns"));
}

TEST(Network, ColumnsThatAreMadeAreOutputsOfOneNumberBehindTheImage) {
  const auto made_by = [](const std::string& name, const Layer& head = layer("head", Dense{1})) {
    NetworkDescription network{"n", kFeatures, {head, layer("image", Dense{8}, "input")}, {}};
    network.makes = {{"leak", name}};
    return network;
  };
  const NetworkDescription fine = made_by("head");
  const NetworkShapes shapes = infer_shapes(fine);
  EXPECT_THAT(shapes.problems, IsEmpty());
  EXPECT_THAT(shapes.outputs, ElementsAre(1, 0));
  EXPECT_THAT(print_network(fine, shapes), HasSubstr("makes the column leak by head"));
  const auto refused = [](const NetworkDescription& network, const std::string& why) {
    const auto problems = infer_shapes(network).problems;
    ASSERT_FALSE(problems.empty()) << why;
    EXPECT_THAT(problems.front().message, HasSubstr(why));
    EXPECT_EQ(problems.front().column, "leak");
  };
  refused(made_by("heat"), "the layer heat of the column leak is no layer; did you mean head?");
  refused(made_by("image"), "the layer image of the column leak is an output already");
  refused(made_by("head", layer("head", Dense{2})),
          "makes 2 for an event; a column is (1), one number");
  NetworkDescription named = made_by("columns", layer("columns", Dense{1}));
  EXPECT_THAT(infer_shapes(named).problems.front().message,
              HasSubstr("\"columns\" means the network's columns"));
}

TEST(Network, OutputsMustBeLayersAndNeedEveryLayer) {
  EXPECT_THAT(problems_of(kFeatures, {layer("score", Dense{2})}, {"scores"}),
              ElementsAre("output scores is no layer; did you mean score?"));
  EXPECT_THAT(problems_of(kFeatures, {layer("score", Dense{2})}, {"score", "score"}),
              ElementsAre("output score is listed twice"));
  EXPECT_THAT(problems_of(kFeatures, {layer("a", Dense{2}), layer("b", Dense{2}, "input")}),
              ElementsAre("layer a (dense): no output depends on it; add it to the outputs or take "
                          "it out"));
  EXPECT_THAT(problems_of(kFeatures, {}), ElementsAre("the network has no layers"));
}

TEST(Network, ExampleNetworksHaveNoProblems) {
  EXPECT_THAT(problems_of(small_generator()), IsEmpty());
  EXPECT_THAT(problems_of(small_discriminator()), IsEmpty());
  EXPECT_THAT(problems_of(flat_images()), IsEmpty());
}

TEST(Network, TableShowsEveryLayerAndTheTotals) {
  const NetworkDescription network = gan3d_51_discriminator();
  const std::string table = print_network(network, infer_shapes(network));
  for (const Layer& each : network.layers) EXPECT_THAT(table, HasSubstr(each.name));
  EXPECT_THAT(table, HasSubstr("51x51x25x16"));
  EXPECT_THAT(table, HasSubstr("87402 parameters, 87354 of them trainable"));
  NetworkDescription wrong = network;
  wrong.outputs = {"nothing"};
  EXPECT_THAT(print_network(wrong, infer_shapes(wrong)), HasSubstr("output nothing is no layer"));
}

}  // namespace
}  // namespace troupe::model
