#include "pipeline/data/test_losses.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "model/streams.h"
#include "tests/model/example_networks.h"

namespace troupe::pipeline {
namespace {

using model::layer;
using model::LossKind;
using model::Target;

// A discriminator that gives the sum of two cells, as its answer and as an energy.
model::GanDescription summing(LossKind kind) {
  model::GanDescription gan;
  gan.discriminator = {"discriminator", model::Shape::image({2, 1, 1}, 1), {}, {"answer", "sum"}};
  gan.discriminator.layers = {layer("answer", model::Sum{}), layer("sum", model::Sum{}, "input")};
  gan.losses = {{"answer", kind, Target::kLabel, 3.0},
                {"answer", LossKind::kGradientPenalty, Target::kLabel, 10.0},
                {"sum", LossKind::kMeanSquaredError, Target::kEcal, 1.0}};
  return gan;
}

using Losses = std::map<std::string, std::map<std::string, double>>;

Losses losses_of(TestLosses& tested, std::size_t real, std::size_t generated) {
  tested.begin({}, {});
  const std::vector<float> image{0.5F, 0.25F}, fake{0.25F, 0.0F};
  for (std::size_t i = 0; i < real; ++i) {
    tested.add(true, image, {.ecal = static_cast<float>(i)});
  }
  for (std::size_t i = 0; i < generated; ++i) tested.add(false, fake, {.ecal = 0.25F});
  Losses losses;
  for (const SlotLosses& slot : tested.end()) {
    for (const auto& [name, loss] : slot.losses) losses[model::slot_name(slot.slot)][name] = loss;
  }
  return losses;
}

// 40 events are two whole batches and a part of one.
TEST(TestLosses, AreMeansOverAllEventsWithoutWeights) {
  const model::GanDescription gan = summing(LossKind::kMeanSquaredError);
  const auto tested = TestLosses::create(gan).value();
  const Losses losses = losses_of(*tested, 40, 40);
  EXPECT_DOUBLE_EQ(losses.at("d_real").at("answer"), 0.0625);
  EXPECT_DOUBLE_EQ(losses.at("d_fake").at("answer"), 0.0625);
  EXPECT_DOUBLE_EQ(losses.at("g").at("answer"), 0.5625);
  double squares = 0.0;
  for (int i = 0; i < 40; ++i) squares += (i - 0.75) * (i - 0.75);
  EXPECT_DOUBLE_EQ(losses.at("d_real").at("sum"), squares / 40);
  EXPECT_EQ(losses.at("d_fake").at("sum"), 0.0);
  EXPECT_EQ(losses.at("d_real").size(), 2U) << "a gradient penalty is left out";
}

TEST(TestLosses, OfTheGeneratorAreThoseOfItsSteps) {
  const model::GanDescription gan = summing(LossKind::kHinge);
  const auto tested = TestLosses::create(gan).value();
  const Losses losses = losses_of(*tested, 1, 1);
  EXPECT_DOUBLE_EQ(losses.at("d_real").at("answer"), 0.25);
  EXPECT_DOUBLE_EQ(losses.at("d_fake").at("answer"), 1.25);
  EXPECT_DOUBLE_EQ(losses.at("g").at("answer"), -0.25);
}

// Classes are counted in the order in which they are named, and a column is taken as stored.
TEST(TestLosses, CompareWithColumnsOfTheData) {
  model::GanDescription gan;
  gan.latent.conditions = {"eta"};
  gan.discriminator = {"discriminator", model::Shape::image({2, 1, 1}, 1), {}, {"kind", "sum"}};
  gan.discriminator.layers = {layer("kind", model::Flatten{}), layer("sum", model::Sum{}, "input")};
  gan.losses = {{"kind", LossKind::kClassCrossentropy, Target::kColumn, 3.0, "pdg", {211, 11}},
                {"sum", LossKind::kMeanAbsoluteError, Target::kColumn, 1.0, "eta"}};
  const auto tested = TestLosses::create(gan).value();
  tested->begin({}, {});
  const std::vector<float> image{0.5F, 0.25F};
  for (const float pdg : {11.0F, 211.0F, 11.0F}) {
    for (const bool is_real : {true, false}) tested->add(is_real, image, {.columns = {3.0F, pdg}});
  }
  const double first = std::log1p(std::exp(-0.25)), second = std::log1p(std::exp(0.25));
  const auto all = tested->end();
  ASSERT_EQ(all.size(), 3U);
  for (const SlotLosses& slot : all) {
    EXPECT_NEAR(slot.losses.at(0).second, (first + 2.0 * second) / 3.0, 1e-6);
    EXPECT_DOUBLE_EQ(slot.losses.at(1).second, 2.25);
  }
}

// Behind the column of the latent. Generated events bring their own.
TEST(TestLosses, FollowFromTheColumnsThatWereMade) {
  model::GanDescription gan;
  gan.latent.conditions = {"eta"};
  gan.discriminator = {"discriminator", model::Shape::image({2, 1, 1}, 1), {}, {"read", "sum"}};
  gan.discriminator.columns = {"leak", "depth"};
  gan.discriminator.layers = {layer("read", model::Slice{model::Axis::kChannels, 1, 1}, "columns"),
                              layer("sum", model::Sum{}, "input")};
  gan.losses = {{"read", LossKind::kMeanSquaredError, Target::kLabel, 1.0},
                {"sum", LossKind::kMeanSquaredError, Target::kEcal, 1.0}};
  const auto tested = TestLosses::create(gan).value();
  tested->begin({}, {});
  const std::vector<float> image{0.5F, 0.25F}, made{9.0F, 5.0F};
  for (const bool is_real : {true, false}) {
    tested->add(is_real, image, {.columns = {-1.0F, 7.0F, 3.0F}},
                is_real ? std::span<const float>() : made);
  }
  const auto all = tested->end();
  EXPECT_DOUBLE_EQ(all.at(0).losses.at(0).second, 4.0);   // of the data
  EXPECT_DOUBLE_EQ(all.at(1).losses.at(0).second, 25.0);  // of generated ones, labelled so
  EXPECT_DOUBLE_EQ(all.at(2).losses.at(0).second, 16.0);  // and labelled real
}

// The column stands behind that of the latent, and each event has its own.
TEST(TestLosses, FollowFromWhatTheNetworkIsTold) {
  model::GanDescription gan;
  gan.latent.conditions = {"eta", "energy", "phi"};
  gan.discriminator = {"discriminator", model::Shape::image({2, 1, 1}, 1), {}, {"told", "sum"}};
  gan.discriminator.conditions = {"energy", "phi"};
  gan.discriminator.layers = {
      layer("told", model::Slice{model::Axis::kChannels, 1, 1}, "conditions"),
      layer("sum", model::Sum{}, "input")};
  gan.losses = {{"told", LossKind::kMeanAbsoluteError, Target::kColumn, 1.0, "eta"},
                {"sum", LossKind::kMeanSquaredError, Target::kEcal, 1.0}};
  const auto tested = TestLosses::create(gan).value();
  tested->begin({}, {});
  const std::vector<float> image{0.5F, 0.25F};
  for (int i = 0; i < 20; ++i) {
    const auto phi = static_cast<float>(i);
    tested->add(true, image, {.energy = 7.0F, .columns = {-1.0F, phi}});
  }
  EXPECT_DOUBLE_EQ(tested->end().at(0).losses.at(0).second, 1.0 + 9.5);
}

// A network that answers 0 is wrong by the velocity itself: by the noise of an image of 0, turned.
TEST(TestLosses, OfADiffusionTaskAreThoseOfTheSameNoiseForEveryState) {
  model::GanDescription gan;
  gan.task = model::Task::kDiffusion;
  gan.discriminator = {"network", model::Shape::image({2, 1, 1}, 3), {}, {"velocity"}};
  gan.discriminator.layers = {layer("velocity", model::Convolution{1, {1, 1, 1}})};
  gan.losses = {{"velocity", LossKind::kMeanSquaredError, Target::kVelocity, 3.0}};
  const auto tested = TestLosses::create(gan).value();
  const std::vector<float> image{0.0F, 0.0F}, weights(4);
  const auto losses_of = [&](std::size_t events) {
    tested->begin(weights, {});
    for (std::size_t i = 0; i < events; ++i) {
      tested->add(true, image, {.energy = 1.0F});
      tested->add(false, image, {.energy = 1.0F});
    }
    return tested->end();
  };
  const auto losses = losses_of(20);
  ASSERT_EQ(losses.size(), 1U) << "nothing judges generated showers";
  EXPECT_EQ(losses[0].slot, model::SlotKind::kDenoise);
  double squares = 0.0;
  for (std::uint32_t event = 0; event < 20; ++event) {
    const runtime::RandomPosition levels{0, event / 16 * 16, 0, 0, model::kLevelStream};
    const runtime::RandomPosition noise{0, event / 16 * 16, 0, 0, model::kNoiseStream};
    const auto at = model::noise_level(runtime::random_uniform(levels, event % 16));
    for (std::uint32_t cell = 0; cell < 2; ++cell) {
      const double v = at.signal * runtime::random_normal(noise, event % 16 * 2 + cell);
      squares += v * v / 40;
    }
  }
  EXPECT_NEAR(losses[0].losses[0].second, squares, 1e-6);
  EXPECT_EQ(losses_of(20)[0].losses, losses[0].losses);
}

TEST(TestLosses, BeginAnewForEachState) {
  const model::GanDescription gan = summing(LossKind::kHinge);
  const auto tested = TestLosses::create(gan).value();
  const Losses first = losses_of(*tested, 3, 0);
  EXPECT_EQ(first.size(), 1U);
  EXPECT_EQ(losses_of(*tested, 3, 0), first);
}

}  // namespace
}  // namespace troupe::pipeline
