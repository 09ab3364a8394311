#include "model/latent.h"

#include <gmock/gmock.h>

namespace troupe::model {
namespace {

LatentDescription latent(std::int64_t size, LatentMode mode, std::vector<Condition> conditions) {
  return {size, std::move(conditions), mode};
}

constexpr auto kEnergy = Condition::kEnergy;
constexpr auto kAngle = Condition::kAngle;

TEST(Latent, PrependLeavesRoomForNoiseAndMultiplyTakesOneConditionWhateverTheSize) {
  EXPECT_TRUE(check_latent(latent(1, LatentMode::kMultiply, {kEnergy})).ok());
  EXPECT_TRUE(check_latent(latent(2, LatentMode::kPrepend, {kEnergy})).ok());
  EXPECT_TRUE(check_latent(latent(3, LatentMode::kPrepend, {kEnergy, kAngle})).ok());
  for (const LatentDescription& wrong : {latent(1, LatentMode::kPrepend, {kEnergy}),
                                         latent(2, LatentMode::kPrepend, {kEnergy, kAngle})}) {
    EXPECT_THAT(check_latent(wrong).error().message, testing::HasSubstr("leaves no noise beside"));
  }
  EXPECT_TRUE(check_latent(latent(3, LatentMode::kPrepend, {})).ok());
  EXPECT_EQ(check_latent(latent(9, LatentMode::kMultiply, {kEnergy, kAngle})).error().message,
            "a latent of mode multiply has one condition, not 2");
}

TEST(Latent, ConditionsComeBeforeTheNoiseOrMultiplyIt) {
  const runtime::RandomPosition position{7};
  const float energy = 0.5F, angle = 1.5F;
  float prepended[4], multiplied[4];
  make_latent(latent(4, LatentMode::kPrepend, {kEnergy, kAngle}), &energy, &angle, 1, position,
              prepended);
  make_latent(latent(4, LatentMode::kMultiply, {kEnergy}), &energy, nullptr, 1, position,
              multiplied);
  EXPECT_EQ(prepended[0], energy);
  EXPECT_EQ(prepended[1], angle);
  for (std::uint32_t j = 0; j < 4; ++j) {
    const auto noise = static_cast<float>(runtime::random_normal(position, j));
    if (j >= 2) {
      EXPECT_EQ(prepended[j], noise);
    }
    EXPECT_EQ(multiplied[j], noise * energy);
  }
}

TEST(LatentDeathTest, AnAngleThatIsAskedForMustBeGiven) {
  const float energy = 1.0F;
  float out[4];
  EXPECT_DEATH(
      make_latent(latent(4, LatentMode::kPrepend, {kEnergy, kAngle}), &energy, nullptr, 1, {}, out),
      "the model asks for an angle");
}

}  // namespace
}  // namespace troupe::model
