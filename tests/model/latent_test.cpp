#include "model/latent.h"

#include <gmock/gmock.h>

namespace troupe::model {
namespace {

LatentDescription latent(std::int64_t size, LatentMode mode, std::vector<std::string> conditions) {
  return {size, std::move(conditions), mode};
}

constexpr const char* kEnergy = kEnergyCondition;
constexpr const char* kAngle = kAngleCondition;

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
  const float* const values[] = {&energy, &angle};
  float prepended[4], multiplied[4];
  make_latent(latent(4, LatentMode::kPrepend, {kEnergy, kAngle}), values, 1, position, prepended);
  make_latent(latent(4, LatentMode::kMultiply, {kEnergy}), std::span(values).first(1), 1, position,
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

TEST(Latent, ColumnsOfTheDataAreConditionsEachTakenOnce) {
  const LatentDescription asked =
      latent(9, LatentMode::kPrepend, {"pdg", kEnergy, "eta", kAngle, "pdg"});
  EXPECT_THAT(columns_of(asked), testing::ElementsAre("pdg", "eta"));
  EXPECT_TRUE(columns_of(latent(9, LatentMode::kPrepend, {kEnergy, kAngle})).empty());
  const std::vector<std::string> many(kMostConditions + 1, "pdg");
  EXPECT_THAT(check_latent(latent(99, LatentMode::kPrepend, many)).error().message,
              testing::HasSubstr("it has room for 16"));
}

TEST(LatentDeathTest, EveryConditionMustBeGiven) {
  const float energy = 1.0F;
  const float* const values[] = {&energy};
  float out[4];
  EXPECT_DEATH(make_latent(latent(4, LatentMode::kPrepend, {kEnergy, kAngle}), values, 1, {}, out),
               "every condition has values");
}

}  // namespace
}  // namespace troupe::model
