// Losses that contradict the layers before them, which would train badly or nothing.

#include <gmock/gmock.h>

#include <string>

#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// What is said of a network of these layers, of which the last makes one number, and this loss.
std::string refusal(const std::string& layers, const std::string& loss) {
  return message_of(
      parse("model:\n  task: supervised\n  network:\n    input: [4, 4, 4, 1]\n"
            "    layers: [" +
            layers +
            ", {slice: {axis: channels, count: 1, name: kind}}]\n    outputs: [kind]\n"
            "  losses: {kind: {kind: " +
            loss +
            ", target: n}}\n"
            "data: {train: a.h5, schema: custom, names: {energy: energy}}\n"));
}

TEST(Losses, ProbabilityIsWhatBceReads) {
  EXPECT_THAT(refusal("{dense: {units: 2, name: score}}", "bce"),
              AllOf(HasSubstr("model.losses.kind.kind: "),
                    HasSubstr("bce reads a probability, and layer \"score\" (dense) makes other "
                              "numbers too; put a sigmoid behind it, or take bce_logits")));
  EXPECT_THAT(refusal("{dense: 2}, {activation: sigmoid}, layer_norm", "bce"),
              HasSubstr("(layer_norm) makes other numbers too"));
  EXPECT_THAT(refusal("{convolution: {filters: 2, kernel: [3, 3, 3]}}, global_average_pool", "bce"),
              HasSubstr("(convolution) makes other numbers too"));
  EXPECT_THAT(refusal("{dense: 2}, {activation: relu}", "bce"),
              HasSubstr("(dense) makes other numbers too"));
  EXPECT_EQ(refusal("{dense: 2}, {activation: sigmoid}", "bce"), "");
  EXPECT_EQ(refusal("{dense: 2}, softmax", "bce"), "");
}

TEST(Losses, OthersMakeProbabilitiesThemselves) {
  EXPECT_THAT(refusal("{dense: 2}, {activation: {kind: sigmoid, name: made}}", "bce_logits"),
              HasSubstr("the loss makes probabilities itself, and layer \"made\" (activation) has "
                        "made them; leave that layer out, or take bce"));
  EXPECT_EQ(refusal("{dense: 2}, {activation: tanh}", "bce_logits"), "");
  EXPECT_EQ(refusal("{dense: 2}, {activation: sigmoid}, {dense: 2}", "bce_logits"), "");
  const std::string classes =
      "model:\n  task: supervised\n  network:\n    input: [4, 4, 4, 1]\n"
      "    layers: [{dense: 3}, softmax, {activation: {kind: linear, name: kind}}]\n    outputs: "
      "[kind]\n"
      "  losses: {kind: {kind: cross_entropy, target: n}}\n"
      "data: {train: a.h5, schema: custom, names: {energy: energy}}\n";
  EXPECT_THAT(message_of(parse(classes)), HasSubstr("(softmax) has made them; leave that layer "
                                                    "out"));
}

TEST(Losses, LayersThatKeepTheRangeAreLookedThrough) {
  const std::string behind =
      ", {activation: linear}, {reshape: [2, 2, 1]}, {max_pool: {size: [2, 1]}}, "
      "{crop: [0, [1, 0]]}, global_max_pool";
  EXPECT_EQ(refusal("{dense: 4}, {activation: sigmoid}" + behind, "bce"), "");
  EXPECT_THAT(refusal("{dense: 4}, {activation: sigmoid}" + behind, "bce_logits"),
              HasSubstr("(activation) has made them"));
}

TEST(Losses, ShareOfALabelIsNone) {
  EXPECT_THAT(
      message_of(parse(kLeast, {"model.losses.generation={kind: mape, target: label}"})),
      HasSubstr("mape is in per cent of the target, and the label of generated events is 0"));
}

}  // namespace
}  // namespace troupe::config
