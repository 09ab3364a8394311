#include "pipeline/steps/state_layout.h"

#include <gtest/gtest.h>

#include "model/backend.h"
#include "pipeline/checkpoint/checkpoint.h"
#include "tests/pipeline/state_example.h"

namespace troupe::pipeline {
namespace {

using namespace model;

// The example's networks, with what it takes to run them.
GanDescription description() {
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
      std::move(Gan::compile(description(), *backend_, 2)).value();
};

TEST_F(StateLayoutOfGan, HasTheModelsTensorsMomentaAndWeights) {
  const StateLayout layout = state_layout(*gan_);
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

TEST_F(StateLayoutOfGan, FunctionsOfAGanAreThoseOfItsLayout) {
  StateExample example{state_layout(*gan_), state_example().options};
  TrainingState by_gan = initial_state(*gan_, example.options, "class", {1, 2});
  TrainingState by_layout = initial_state(example.layout, example.options, "class", {1, 2});
  for (std::uint32_t n = 0; n < 4; ++n) {
    const SlotKind slot = example.options.schedule[n];
    const StepRecord record = reduce(example, by_gan, random_contributions(example, slot, n + 1));
    ASSERT_TRUE(apply(*gan_, example.options, record, by_gan).ok());
    ASSERT_TRUE(apply(example.layout, example.options, record, by_layout).ok());
  }
  EXPECT_EQ(hash_of_state(by_gan), hash_of_state(by_layout));
  const Checkpoint checkpoint{by_gan, "", {}, {}, ""};
  const auto file = encode_checkpoint(checkpoint, *gan_, example.options);
  ASSERT_TRUE(file.ok());
  const auto read = decode_checkpoint(*file, "a.h5", *gan_, example.options);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->state_hash, hash_of_state(by_gan));
}

}  // namespace
}  // namespace troupe::pipeline
