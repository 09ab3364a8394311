#include "pipeline/data/discriminator_outputs.h"

#include <gmock/gmock.h>

#include "runtime/base/math.h"
#include "tests/model/example_networks.h"

namespace troupe::pipeline {
namespace {

using model::layer;
using model::LossKind;
using testing::HasSubstr;

// A discriminator whose only answer is the sum of two cells.
model::GanDescription summing(LossKind kind) {
  model::GanDescription gan;
  gan.discriminator = {"discriminator", model::Shape::image({2, 1, 1}, 1), {}, {"generation"}};
  gan.discriminator.layers = {layer("generation", model::Sum{})};
  gan.losses = {{"generation", kind, model::Target::kLabel, 1.0}};
  return gan;
}

struct Answer {
  model::DiscriminatorOutput output;
  float value = 0.0F;
};

Answer answer_of(LossKind kind) {
  const auto backend = model::make_reference_backend(model::DataType::kFloat32);
  runtime::ThreadTeam team(1, [] {});
  const model::GanDescription gan = summing(kind);
  const auto reader = DiscriminatorReader::create(gan, *backend, team).value();
  auto outputs = reader->outputs();
  const std::vector<float> images{0.5F, 0.25F}, one{1.0F}, nothing;
  reader->read(nothing, nothing, {images, one, one, one}, &model::DiscriminatorOutput::data,
               outputs);
  return {outputs.at(0), outputs.at(0).data.at(0)};
}

TEST(DiscriminatorOutputs, AreProbabilitiesWhereTheLossIsACrossEntropy) {
  const Answer probability = answer_of(LossKind::kBinaryCrossentropy),
               logit = answer_of(LossKind::kLogisticCrossentropy);
  EXPECT_EQ(probability.value, 0.75F);
  EXPECT_EQ(logit.value, static_cast<float>(runtime::math::sigmoid(0.75)));
  for (const Answer& answer : {probability, logit}) {
    EXPECT_THAT(answer.output.title, HasSubstr("Probability that the shower is real"));
    EXPECT_EQ(answer.output.low, 0.0);
    EXPECT_EQ(answer.output.high, 1.0);
  }
}

TEST(DiscriminatorOutputs, OfOtherLossesAreAnswersThatMayLieOutside) {
  const Answer answer = answer_of(LossKind::kMeanSquaredError);
  EXPECT_EQ(answer.value, 0.75F);
  EXPECT_THAT(answer.output.title, testing::Not(HasSubstr("Probability")));
  EXPECT_LT(answer.output.low, 0.0);
  EXPECT_GT(answer.output.high, 1.0);
}

TEST(DiscriminatorOutputs, OfCriticsAreScoresOfAnySize) {
  for (const LossKind kind : {LossKind::kHinge, LossKind::kWasserstein}) {
    const Answer answer = answer_of(kind);
    EXPECT_EQ(answer.value, 0.75F);
    EXPECT_THAT(answer.output.title, HasSubstr("Score of the critic"));
    EXPECT_TRUE(answer.output.by_values);
  }
}

// More showers than are judged at once, each by its own conditions.
TEST(DiscriminatorOutputs, FollowFromWhatTheDiscriminatorIsTold) {
  const auto backend = model::make_reference_backend(model::DataType::kFloat32);
  runtime::ThreadTeam team(1, [] {});
  model::GanDescription gan = summing(LossKind::kWasserstein);
  gan.discriminator.conditions = {"angle", "energy"};
  gan.discriminator.layers = {
      layer("generation", model::Slice{model::Axis::kChannels, 1, 1}, "conditions")};
  std::vector<float> images(40), energies, angles(20, 1.5F);
  for (int i = 0; i < 20; ++i) energies.push_back(0.1F * static_cast<float>(i + 1));
  const auto judged = [&] {
    const auto reader = DiscriminatorReader::create(gan, *backend, team).value();
    auto outputs = reader->outputs();
    reader->read({}, {}, {images, energies, angles, energies}, &model::DiscriminatorOutput::data,
                 outputs);
    return outputs;
  };
  EXPECT_EQ(judged().at(0).data, energies);
  gan.latent.conditions = gan.discriminator.conditions = {"energy", "eta"};
  EXPECT_TRUE(judged().empty()) << "nobody says what the columns of showers are";
}

}  // namespace
}  // namespace troupe::pipeline
