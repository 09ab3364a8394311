#include "pipeline/steps/state_layout.h"

#include <gtest/gtest.h>

#include "model/backend.h"
#include "pipeline/checkpoint/checkpoint.h"
#include "tests/pipeline/state_example.h"

namespace troupe::pipeline {
namespace {

using namespace model;

// The example's networks, with what it takes to run them.
GanDescription gan_description() {
  GanDescription gan;
  gan.generator = {"generator",
                   Shape::features(3),
                   {{"dense", Dense{4}, ""},
                    {"norm", BatchNorm{0.9}, ""},
                    {"hidden", Dense{4}, ""},
                    {"second_norm", BatchNorm{0.5}, ""},
                    {"image", Dense{2}, ""}},
                   {}};
  gan.discriminator = {"discriminator",
                       Shape::features(2),
                       {{"hidden", Dense{3}, ""},
                        {"norm", BatchNorm{0.75}, ""},
                        {"energy", Dense{1}, ""},
                        {"score", Dense{1}, "norm"},
                        {"generation", Activation{ActivationKind::kSigmoid}, ""}},
                       {"generation", "energy"}};
  gan.latent.size = 3;
  gan.losses = {
      {"generation", LossKind::kBinaryCrossentropy, Target::kLabel, 3.0},
      {"energy", LossKind::kMeanAbsolutePercentageError, Target::kEnergy, 0.5},
  };
  return gan;
}

class StateLayoutOfGan : public ::testing::Test {
 protected:
  const std::unique_ptr<Backend> backend_ = make_reference_backend(DataType::kFloat32);
  const std::unique_ptr<const Gan> gan_ =
      std::move(Gan::compile(gan_description(), *backend_, 2)).value();
};

TEST_F(StateLayoutOfGan, HasTheModelsTensorsMomentaAndWeights) {
  const StateLayout layout = StateLayout(*gan_);
  EXPECT_EQ(layout.networks[kGenerator].momentum, (std::vector<double>{0.9, 0.9, 0.5, 0.5}));
  EXPECT_EQ(layout.networks[kDiscriminator].momentum, (std::vector<double>{0.75, 0.75}));
  EXPECT_EQ(layout.networks[kGenerator].parameters.weights.size(), 10u);
  EXPECT_EQ(layout.networks[kDiscriminator].parameters.moving_size, 6);
  EXPECT_EQ(layout.loss_weights, (std::vector<double>{3.0, 0.5}));
  for (const SlotKind slot : {SlotKind::kDReal, SlotKind::kDFake, SlotKind::kG}) {
    EXPECT_EQ(layout.of(slot).size, gan_->contributions(slot).size);
    EXPECT_EQ(layout.of(slot).tensors.size(), gan_->contributions(slot).tensors.size());
  }
  EXPECT_GE(layout.of(SlotKind::kDFake).find("empty_images"), 0);
  EXPECT_LT(layout.of(SlotKind::kG).find("empty_images"), 0);
}

}  // namespace
}  // namespace troupe::pipeline
