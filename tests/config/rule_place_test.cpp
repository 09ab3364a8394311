// Rules over several fields are told of at the one that its author has to change.

#include <gmock/gmock.h>

#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// For a 12 x 12 x 12 model whose data are generated.
const std::string kBase =
    "model: {zoo: gan3d_12}\n"
    "data: {train: synthetic, preprocessing: {power: 0.35}, synthetic: {events: 500}}\n";
const std::string kAngled =
    "model: {zoo: gan3d_51}\n"
    "data: {train: synthetic, schema: lcd-angle}\n";

TEST(RulePlace, IsTheOverrideThatBreaksIt) {
  const struct {
    std::string change, field;
  } cases[] = {
      {"model.generator.latent.conditions=[energy,energy]", "model.generator.latent.conditions"},
      {"model.discriminator.outputs=[features]", "model.discriminator.outputs"},
      {"data.synthetic.min_energy=600", "data.synthetic.min_energy"},
      {"data.test_one_in=1", "data.test_one_in"},
      {"train.micro_batch=1000", "train.micro_batch"},
      {"train.learning_rate.g={policy: warmup}", "train.learning_rate.g.policy"},
      {"data.test_one_in=0", "data.test_one_in"},
      {"model.discriminator.input=[2, 2, 2, 1]", "model.discriminator.layers."},
  };
  for (const auto& [change, field] : cases) {
    const std::string message = message_of(parse(kBase, {change}));
    EXPECT_THAT(message, HasSubstr("--set " + change + ": " + field)) << change;
    EXPECT_THAT(message, Not(HasSubstr("zoo/"))) << change;
    EXPECT_THAT(message, Not(HasSubstr("t.yaml"))) << change;
  }
}

TEST(RulePlace, IsWhatTheAuthorWroteRatherThanTheZoo) {
  const std::string text =
      "data: {train: a.h5, preprocessing: {power: 0.35}}\n"
      "model:\n"
      "  zoo: gan3d_12\n"
      "  discriminator:\n"
      "    outputs: [features]\n";
  const std::string message = message_of(parse(text));
  EXPECT_THAT(message, HasSubstr("t.yaml:5:14: model.discriminator.outputs: no loss is left"));
  EXPECT_THAT(message, Not(HasSubstr("zoo/")));
}

TEST(RulePlace, IsTheOtherFieldWhereThatWasChangedLast) {
  const struct {
    std::string text, change;
  } cases[] = {
      {"data: {train: a.h5, schema: custom, names: {image: X, energy: y}}\nmodel: {zoo: toy}\n",
       "data.train=synthetic"},
      {"model: {zoo: toy}\ndata: {train: a.h5}\ncluster: {failure: {dead_after: 5s}}\n",
       "cluster.failure.heartbeat=3s"},
      {"model: {zoo: toy}\ndata: {train: a.h5}\ntrain: {fake_conditions: uniform}\n",
       "model.losses.auxiliary.target=bins"},
  };
  for (const auto& [text, change] : cases) {
    ASSERT_TRUE(parse(text).ok()) << message_of(parse(text));
    const std::string field = change.substr(0, change.find('='));
    EXPECT_THAT(message_of(parse(text, {change})), HasSubstr("--set " + change + ": " + field));
  }
}

TEST(RulePlace, ShowersAreJudgedByTheirGenerator) {
  EXPECT_TRUE(parse(kBase, {"data.synthetic.threshold=1"}).ok());
  EXPECT_THAT(message_of(parse(kBase, {"data.synthetic.threshold=1.1"})),
              HasSubstr("data.synthetic.threshold: expected a number from 0 to 1"));
  EXPECT_TRUE(parse(kAngled, {"data.synthetic.min_angle=1.2"}).ok());
  EXPECT_TRUE(parse(kAngled, {"data.synthetic.max_angle=2.094"}).ok());
  EXPECT_THAT(message_of(parse(kAngled, {"data.synthetic.min_angle=1.047"})),
              StartsWith("--set data.synthetic.min_angle=1.047: data.synthetic.min_angle: shower "
                         "angles from 1.047 to 2.094 rad"));
  EXPECT_THAT(message_of(parse(kAngled, {"data.synthetic.max_angle=2.095"})),
              StartsWith("--set data.synthetic.max_angle=2.095: data.synthetic.max_angle: shower"));
  EXPECT_THAT(message_of(parse(kBase, {"data.synthetic.max_angle=1.2"})),
              HasSubstr("data.synthetic.max_angle: shower angles from 1.571 to 1.2 rad"));
}

// One topology with made showers, and with files by --set; a run's own topology holds both.
TEST(SyntheticShowers, MayBeDescribedBesideFiles) {
  const std::string made = "model: {zoo: toy}\ndata: {train: synthetic, synthetic: {seed: 3}}\n";
  const LoadedTopology loaded = parsed(made, {"data.train=a.h5"});
  EXPECT_EQ(values_of(parsed(print_topology(loaded)).topology), values_of(loaded.topology));
}

}  // namespace
}  // namespace troupe::config
