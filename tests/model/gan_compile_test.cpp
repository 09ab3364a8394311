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
  gan.latent.conditions.push_back(Condition::kAngle);
  EXPECT_THAT(message_of(gan), HasSubstr("a model with an angle needs batch"));
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
  gan.latent = {1, {Condition::kEnergy}, LatentMode::kMultiply};
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
