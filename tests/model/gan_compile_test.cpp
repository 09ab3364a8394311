// What Gan::compile refuses, whoever describes the model.

#include <gmock/gmock.h>

#include "model/gan.h"
#include "tests/model/example_networks.h"

namespace troupe::model {
namespace {

using testing::HasSubstr;

// Images of 2 x 2 x 2 cells judged by a score and by their bins.
GanDescription small_gan() {
  GanDescription gan;
  gan.latent.size = 3;
  gan.generator = {"generator", Shape::features(3), {}, {}};
  gan.generator.layers = {layer("dense", Dense{8}),
                          layer("image", Reshape{Shape::image({2, 2, 2}, 1)})};
  gan.discriminator = {"discriminator", Shape::image({2, 2, 2}, 1), {}, {}};
  gan.discriminator.layers = {layer("flat", Flatten{}), layer("score", Dense{1}),
                              layer("bins", Bins{}, "input")};
  gan.discriminator.outputs = {"score", "bins"};
  gan.losses = {{"score", LossKind::kMeanAbsoluteError, Target::kLabel, 1.0},
                {"bins", LossKind::kMeanAbsolutePercentageError, Target::kBins, 1.0}};
  return gan;
}

std::string message_of(const GanDescription& gan, std::int64_t batch = 2) {
  const auto backend = make_reference_backend(DataType::kFloat32);
  const auto compiled = Gan::compile(gan, *backend, batch);
  return compiled.ok() ? std::string() : compiled.error().message;
}

TEST(GanCompile, UniformConditionsHaveNeitherBinsNorAngles) {
  GanDescription gan = small_gan();
  EXPECT_EQ(message_of(gan), "");
  gan.fake_conditions = FakeConditions::kUniform;
  EXPECT_THAT(message_of(gan), HasSubstr("loss bins compares fakes with the real batch"));
  gan.losses.pop_back();
  EXPECT_EQ(message_of(gan), "");
  gan.losses.push_back({"bins", LossKind::kMeanAbsoluteError, Target::kAngle, 1.0});
  EXPECT_THAT(message_of(gan), HasSubstr("loss bins compares fakes with the real batch"));
  gan = small_gan();
  gan.fake_conditions = FakeConditions::kUniform;
  gan.latent.conditions.push_back(kAngleCondition);
  EXPECT_THAT(message_of(gan), HasSubstr("a model with an angle needs batch"));
}

TEST(GanCompile, ColumnsOfTheDataAreThoseOfTheLatentAndThenOfTheLosses) {
  GanDescription gan = small_gan();
  gan.latent.conditions = {"pdg"};
  gan.losses.push_back({"score", LossKind::kMeanSquaredError, Target::kColumn, 1.0, "eta"});
  gan.losses.push_back({"score", LossKind::kMeanSquaredError, Target::kColumn, 1.0, "pdg"});
  EXPECT_EQ(message_of(gan), "");
  EXPECT_THAT(columns_of(gan), testing::ElementsAre("pdg", "eta"));
  gan.fake_conditions = FakeConditions::kUniform;
  EXPECT_THAT(message_of(gan), HasSubstr("a model with pdg needs batch"));
}

// The generator makes one column besides its image.
GanDescription making_a_column() {
  GanDescription gan = small_gan();
  gan.generator.layers.insert(gan.generator.layers.begin(), layer("leakage", Dense{1}));
  gan.generator.layers[1].input = "input";
  gan.generator.makes = {{"leak", "leakage"}};
  gan.discriminator.columns = {"leak"};
  gan.discriminator.layers[1] = layer("joined", Concatenate{{"columns"}});
  gan.discriminator.layers.insert(gan.discriminator.layers.begin() + 2, layer("score", Dense{1}));
  return gan;
}

TEST(GanCompile, ColumnsAreMadeAndReadAndNothingElse) {
  EXPECT_EQ(message_of(making_a_column()), "");
  EXPECT_THAT(columns_of(making_a_column()), testing::ElementsAre("leak"));
  const auto refused = [](auto change, const std::string& why) {
    GanDescription gan = making_a_column();
    change(gan);
    EXPECT_THAT(message_of(gan), HasSubstr(why));
  };
  refused([](auto& gan) { gan.generator.makes.clear(); },
          "reads the column leak, which the generator does not make");
  refused([](auto& gan) { gan.discriminator.columns.clear(); },
          "makes the column leak, which the discriminator does not read");
  refused([](auto& gan) { gan.latent.conditions.emplace_back("leak"); },
          "makes leak, which showers are asked for");
  refused([](auto& gan) { gan.losses[0].target = Target::kColumn, gan.losses[0].column = "leak"; },
          "loss score: leak is made by the generator");
  refused([](auto& gan) { gan.generator.layers[0] = layer("leakage", Dense{2}); },
          "the generator makes 2 of the columns");
  refused(
      [](auto& gan) {
        gan.losses.push_back({"score", LossKind::kGradientPenalty, Target::kLabel, 1.0});
      },
      "gradient penalty: is of images alone");
  refused([](auto& gan) { gan.task = Task::kSupervised; },
          "columns are what a GAN's generator makes; the network of a supervised task");
}

TEST(GanCompile, ASupervisedTaskHasOneNetworkAndNoTargetsOfFakes) {
  GanDescription task = small_gan();
  task.task = Task::kSupervised;
  task.generator = {};
  task.discriminator.layers = {layer("flat", Flatten{}), layer("class", Dense{3}),
                               layer("energy", Dense{1}, "flat")};
  task.discriminator.outputs = {"class", "energy"};
  task.losses = {
      {"class", LossKind::kClassCrossentropy, Target::kColumn, 1.0, "pdg", {11, 22, 211}},
      {"energy", LossKind::kHuber, Target::kEnergy, 1.0}};
  EXPECT_EQ(message_of(task), "");
  EXPECT_THAT(columns_of(task), testing::ElementsAre("pdg"));
  task.losses[0].classes.pop_back();
  EXPECT_THAT(message_of(task), HasSubstr("2 classes are named, but output \"class\" is 3"));
  task.losses[0].classes.clear();
  EXPECT_EQ(message_of(task), "");
  task.losses[1] = {"energy", LossKind::kClassCrossentropy, Target::kColumn, 1.0, "pdg"};
  EXPECT_THAT(message_of(task), HasSubstr("classes need an output of two features or more"));
  task.losses[1] = {"energy", LossKind::kBinaryCrossentropy, Target::kLabel, 1.0};
  EXPECT_THAT(message_of(task), HasSubstr("loss energy: target label is of GANs"));
}

TEST(GanCompile, GradientPenaltyIsOneAndOfSingleEvents) {
  GanDescription gan = small_gan();
  gan.losses.push_back({"score", LossKind::kGradientPenalty, Target::kLabel, 10.0});
  EXPECT_EQ(message_of(gan), "");
  gan.losses.push_back(gan.losses.back());
  EXPECT_THAT(message_of(gan), HasSubstr("one gradient penalty"));
  gan.losses.pop_back();
  gan.discriminator.layers.insert(gan.discriminator.layers.begin(), layer("norm", BatchNorm{}));
  EXPECT_THAT(message_of(gan), HasSubstr("take layer_norm in its place"));
}

TEST(GanCompile, MultiplyTakesALatentOfOneFeature) {
  GanDescription gan = small_gan();
  gan.latent = {1, {kEnergyCondition}, LatentMode::kMultiply};
  gan.generator.input = Shape::features(1);
  EXPECT_EQ(message_of(gan), "");
  gan.latent.mode = LatentMode::kPrepend;
  EXPECT_THAT(message_of(gan), HasSubstr("leaves no noise beside"));
}

TEST(GanCompile, NoiseForABatchMustBeCountableIn32Bits) {
  GanDescription gan = small_gan();
  gan.latent.size = std::int64_t{1} << 24;
  gan.generator.input = Shape::features(gan.latent.size);
  gan.generator.layers.front().kind = Dense{8};
  EXPECT_THAT(message_of(gan, 1 << 8),
              HasSubstr("network generator: an input of 16777216 elements for each of 256 events "
                        "has more than 4294967295; use a smaller micro-batch"));
}

}  // namespace
}  // namespace troupe::model
