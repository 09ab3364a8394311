#include "model/instructions.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/example_networks.h"
#include "tests/model/op_support.h"
#include "tests/model/random_network.h"

namespace troupe::model {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

InstructionLists instructions_of(const NetworkDescription& network) {
  const NetworkShapes shapes = infer_shapes(network);
  ProgramOptions options;
  options.batch = 2;
  return make_instructions(network, shapes, layout_parameters(network, shapes), options);
}

// "dense_forward score", ...
std::vector<std::string> names(const NetworkDescription& network, const InstructionLists& lists,
                               Pass pass) {
  std::vector<std::string> found;
  for (const Instruction& instruction : lists.passes[static_cast<std::size_t>(pass)]) {
    const std::string layer =
        instruction.layer < 0 ? "-"
                              : network.layers[static_cast<std::size_t>(instruction.layer)].name;
    found.push_back(operation_name(instruction.operation) + " " + layer);
  }
  return found;
}

TEST(Instructions, GeneratorLayersAreFusedIntoConvolutions) {
  const NetworkDescription network = small_generator();
  const InstructionLists lists = instructions_of(network);
  EXPECT_THAT(names(network, lists, Pass::kForwardTraining),
              ElementsAre("dense_forward dense", "activation_forward tanh",
                          "convolution_forward conv1", "batch_norm_training norm",
                          "dropout_forward dropout", "convolution_forward conv2"));
  EXPECT_THAT(
      names(network, lists, Pass::kForwardInference),
      ElementsAre("dense_forward dense", "activation_forward tanh", "convolution_forward conv1",
                  "batch_norm_inference norm", "convolution_forward conv2"));
  const auto& first = std::get<ConvolutionForward>(lists.passes[0][2].operation);
  EXPECT_EQ(first.activation.kind, ActivationKind::kLeakyRelu);
  EXPECT_EQ(first.geometry.upsample, (Extent{2, 1, 3}));
  EXPECT_EQ(first.geometry.pad_before, (Extent{1, 0, 2}));
  const auto& second = std::get<ConvolutionForward>(lists.passes[0][5].operation);
  EXPECT_EQ(second.activation.kind, ActivationKind::kLinear);
  EXPECT_EQ(second.geometry.pad_before, (Extent{1, 1, 1}));
  EXPECT_EQ(second.geometry.pad_after, (Extent{2, 2, 1}));
}

TEST(Instructions, UpsamplingThatOthersReadStaysALayer) {
  NetworkDescription network{"n", Shape::image({3, 3, 3}, 1), {}, {"conv", "up"}};
  network.layers = {layer("up", Upsample{{2, 2, 2}}), layer("pad", Pad{{{1, 1, 1}}}),
                    layer("conv", convolution(1, {2, 2, 2}, Padding::kSame))};
  const std::vector<std::string> both =
      names(network, instructions_of(network), Pass::kForwardTraining);
  EXPECT_THAT(both, ElementsAre("upsample_forward up", "convolution_forward conv"));
  network.outputs = {"conv"};
  EXPECT_THAT(names(network, instructions_of(network), Pass::kForwardTraining),
              ElementsAre("convolution_forward conv"));
}

TEST(Instructions, PadsInARowAllBecomePaddingOfTheConvolution) {
  NetworkDescription network{"n", Shape::image({3, 3, 3}, 1), {}, {}};
  network.layers = {layer("pad1", Pad{{{1, 0, 2}}}), layer("pad2", Pad{{{1, 1, 0}}}),
                    layer("conv", convolution(1, {2, 2, 2}, Padding::kSame))};
  const InstructionLists lists = instructions_of(network);
  EXPECT_THAT(names(network, lists, Pass::kForwardTraining),
              ElementsAre("convolution_forward conv"));
  const auto& forward = std::get<ConvolutionForward>(lists.passes[0][0].operation);
  EXPECT_EQ(forward.geometry.pad_before, (Extent{2, 1, 2}));
  EXPECT_EQ(forward.geometry.pad_after, (Extent{3, 2, 3}));
  EXPECT_EQ(forward.geometry.out, (Extent{7, 5, 7}));
}

TEST(Instructions, PadsOfUnequalEndsBecomePaddingOfTheConvolution) {
  NetworkDescription network{"n", Shape::image({3, 3, 3}, 1), {}, {}};
  network.layers = {layer("pad1", Pad{{{1, 0, 2}, {0, 3, 1}}}), layer("pad2", Pad{{{1, 1, 0}}}),
                    layer("conv", convolution(1, {2, 2, 2}))};
  const InstructionLists lists = instructions_of(network);
  EXPECT_THAT(names(network, lists, Pass::kForwardTraining),
              ElementsAre("convolution_forward conv"));
  const auto& forward = std::get<ConvolutionForward>(lists.passes[0][0].operation);
  EXPECT_EQ(forward.geometry.pad_before, (Extent{2, 1, 2}));
  EXPECT_EQ(forward.geometry.pad_after, (Extent{1, 4, 1}));
  EXPECT_EQ(forward.geometry.out, (Extent{5, 7, 5}));
}

TEST(Instructions, ConvolutionsWithStrideAndDilationAreComputedCellByCell) {
  Convolution both = convolution(1, {2, 1, 2});
  both.stride = {2, 1, 1};
  both.dilation = {2, 2, 1};
  NetworkDescription network{"n", Shape::image({5, 3, 3}, 1), {}, {}};
  network.layers = {layer("pad", Pad{{{1, 0, 0}}}), layer("conv", both),
                    layer("relu", Activation{ActivationKind::kRelu})};
  EXPECT_THAT(names(network, instructions_of(network), Pass::kForwardTraining),
              ElementsAre("pad_forward pad", "grouped_convolution_forward conv",
                          "activation_forward relu"));
  // Along an axis of one tap a dilation is none.
  both.kernel = {1, 2, 2};
  both.dilation = {2, 1, 1};
  network.layers[1].kind = both;
  EXPECT_THAT(names(network, instructions_of(network), Pass::kForwardTraining),
              ElementsAre("split_phases conv", "split_phases conv", "convolution_forward conv"));
}

TEST(Instructions, BackwardToParametersComputesNoGradientNobodyNeeds) {
  const NetworkDescription network = small_discriminator();
  EXPECT_THAT(
      names(network, instructions_of(network), Pass::kBackwardParameters),
      ElementsAre("dense_backward_parameters auxiliary", "dense_backward_input auxiliary",
                  "activation_backward generation", "dense_backward_parameters score",
                  "dense_backward_input score", "accumulate score", "average_pool_backward pool",
                  "dropout_backward dropout", "batch_norm_backward norm",
                  "activation_backward conv1", "convolution_backward_parameters conv1"));
}

TEST(Instructions, BackwardToTheInputComputesNoWeightGradientAndNothingOfBins) {
  const NetworkDescription network = small_discriminator();
  const InstructionLists lists = instructions_of(network);
  EXPECT_THAT(
      names(network, lists, Pass::kBackwardInput),
      ElementsAre("repeat_rows ecal", "angle_backward angle", "accumulate angle",
                  "power_backward image", "dense_backward_input auxiliary",
                  "activation_backward generation", "dense_backward_input score",
                  "accumulate score", "average_pool_backward pool", "dropout_backward dropout",
                  "batch_norm_backward norm", "activation_backward conv1",
                  "convolution_backward_input conv1", "accumulate conv1"));
  for (const Instruction& instruction :
       lists.passes[static_cast<std::size_t>(Pass::kBackwardInput)]) {
    for (const Operand& operand : instruction.operands) {
      EXPECT_NE(operand.location, Location::kGradients);
    }
  }
}

TEST(Instructions, WeightsNoGradientFlowsToAreZeroed) {
  NetworkDescription network{"n", Shape::image({3, 3, 3}, 1), {}, {}};
  network.layers = {layer("blind1", convolution(1, {2, 2, 2})),
                    layer("blind2", BatchNorm{}),
                    layer("bins", Bins{}),
                    layer("score", Dense{1}, "input"),
                    layer("blind3", Dense{1}, "bins"),
                    layer("seen", Dense{1}, "blind3")};
  network.outputs = {"bins", "score", "seen"};
  const InstructionLists lists = instructions_of(network);
  const auto found = names(network, lists, Pass::kBackwardParameters);
  EXPECT_THAT(found, Contains("zero_fill blind1").Times(1));
  EXPECT_THAT(found, Not(Contains("batch_norm_backward blind2")));
  EXPECT_THAT(found, Contains("dense_backward_parameters blind3"));
  const Instruction& fill =
      lists.passes[static_cast<std::size_t>(Pass::kBackwardParameters)].back();
  EXPECT_EQ(std::get<ZeroFill>(fill.operation).elements, 8 + 1 + 1 + 1);
}

TEST(Instructions, LayersWhoseResultIsSeenAreNotFused) {
  NetworkDescription network = small_generator();
  network.outputs = {"pad1", "conv1", "linear"};
  const auto found = names(network, instructions_of(network), Pass::kForwardTraining);
  EXPECT_THAT(found, Contains("pad_forward pad1"));
  EXPECT_THAT(found, Contains("activation_forward leaky"));
}

TEST(Instructions, OutputsThatRenameAnotherResultAreCopied) {
  NetworkDescription network{"n", Shape::features(4), {}, {}, {"energy"}};
  network.layers = {layer("same", Activation{}), layer("dense", Dense{4}, "input"),
                    layer("dropout", Dropout{0.5}), layer("told", Flatten{}, "conditions")};
  network.outputs = {"same", "dense", "dropout", "told"};
  const InstructionLists lists = instructions_of(network);
  EXPECT_THAT(names(network, lists, Pass::kForwardTraining),
              ElementsAre("activation_forward same", "dense_forward dense",
                          "dropout_forward dropout", "activation_forward told"));
  EXPECT_THAT(names(network, lists, Pass::kForwardInference),
              ElementsAre("activation_forward same", "dense_forward dense",
                          "activation_forward dropout", "activation_forward told"));
}

TEST(Instructions, NoGradientOfConditionsIsComputed) {
  NetworkDescription network{"n", Shape::features(4), {}, {}, {"energy", "angle"}};
  network.layers = {layer("asked", Dense{3}, "conditions"), layer("seen", Dense{2}, "input"),
                    layer("both", Concatenate{{"asked", "conditions"}}), layer("score", Dense{1})};
  const InstructionLists lists = instructions_of(network);
  const auto to_parameters = names(network, lists, Pass::kBackwardParameters);
  EXPECT_THAT(to_parameters, Contains("dense_backward_parameters asked"));
  EXPECT_THAT(to_parameters, Not(Contains("dense_backward_input asked")));
  for (const std::string& name : names(network, lists, Pass::kBackwardInput)) {
    EXPECT_THAT(name, Not(testing::EndsWith(" asked")));
  }
}

TEST(Instructions, GradientOfColumnsIsComputedWithThatOfTheInput) {
  NetworkDescription network{"n", Shape::features(4), {}, {}, {}, {"leak"}};
  network.layers = {layer("leaks", Dense{3}, "columns"), layer("seen", Dense{2}, "input"),
                    layer("both", Concatenate{{"leaks", "columns"}}), layer("score", Dense{1})};
  const auto to_inputs = names(network, instructions_of(network), Pass::kBackwardInput);
  EXPECT_THAT(to_inputs, Contains("dense_backward_input leaks"));
  EXPECT_THAT(to_inputs, Contains("dense_backward_input seen"));
  // The columns alone are read: the input's gradient is 0.
  network.layers = {layer("score", Dense{1}, "columns")};
  const InstructionLists lists = instructions_of(network);
  const auto& pass = lists.passes[static_cast<std::size_t>(Pass::kBackwardInput)];
  ASSERT_EQ(pass.size(), 2U);
  EXPECT_EQ(pass[0].operands.back().tensor, lists.columns_gradient);
  EXPECT_EQ(pass[1].operands.back().tensor, lists.input_gradient);
}

// Each instruction gives its operation the operands that the operation's comment lists, of the
// listed size and in the listed direction.
TEST(Instructions, OperandsAreThoseOfTheOperation) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const NetworkDescription network = random_network(seed);
    const InstructionLists lists = instructions_of(network);
    for (const auto& pass : lists.passes) {
      for (const Instruction& instruction : pass) {
        const std::string name = operation_name(instruction.operation);
        const std::vector<OperandDescription> listed = operands_of(instruction.operation);
        ASSERT_EQ(instruction.operands.size(), listed.size()) << name;
        for (std::size_t i = 0; i < listed.size(); ++i) {
          const Operand& operand = instruction.operands[i];
          if (operand.location == Location::kNull) continue;
          const Access access = listed[i].content == Content::kWritten   ? Access::kWrite
                                : listed[i].content == Content::kUpdated ? Access::kUpdate
                                                                         : Access::kRead;
          EXPECT_EQ(operand.access, access) << name << " " << i;
          if (operand.location != Location::kArena) continue;
          EXPECT_EQ(lists.tensors[static_cast<std::size_t>(operand.tensor)].elements,
                    listed[i].size)
              << name << " " << listed[i].name;
        }
      }
    }
  }
}

TEST(Instructions, EveryWeightGetsItsGradientOnce) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const NetworkDescription network = random_network(seed);
    const ParameterLayout layout = layout_parameters(network, infer_shapes(network));
    const InstructionLists lists = instructions_of(network);
    std::vector<int> written(static_cast<std::size_t>(layout.weights_size), 0);
    for (const Instruction& instruction :
         lists.passes[static_cast<std::size_t>(Pass::kBackwardParameters)]) {
      for (const Operand& operand : instruction.operands) {
        if (operand.location != Location::kGradients) continue;
        std::int64_t size = 0;
        if (const auto* fill = std::get_if<ZeroFill>(&instruction.operation)) size = fill->elements;
        for (const ParameterTensor& tensor : layout.weights) {
          if (size == 0 && tensor.offset == operand.offset) size = tensor.size;
        }
        for (std::int64_t i = 0; i < size; ++i)
          ++written[static_cast<std::size_t>(operand.offset + i)];
      }
    }
    EXPECT_TRUE(std::all_of(written.begin(), written.end(), [](int times) { return times == 1; }))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace troupe::model
