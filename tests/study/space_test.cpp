#include "study/space.h"

#include <gmock/gmock.h>

#include "tests/study/study_support.h"

namespace troupe::study {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(Space, BoundsAreReachedAndKept) {
  for (const Dimension& dimension :
       {logarithmic("a", 1e-4, 1e-2), linear("a", -3.0, 7.1), linear("a", 0.1234567891, 0.2)}) {
    const auto [low, high] = dimension.log ? *dimension.log : *dimension.linear;
    EXPECT_EQ(value_at(dimension, 0.0), low);
    EXPECT_EQ(value_at(dimension, 1.0), high);
    for (int i = 0; i <= 100; ++i) {
      const double value = value_at(dimension, i / 100.0);
      EXPECT_TRUE(value >= low && value <= high);
      EXPECT_NEAR(share_of(dimension, value), i / 100.0, 1e-5);
    }
  }
}

TEST(Space, LogarithmsHaveEqualFactors) {
  const Dimension rate = logarithmic("rate", 1e-4, 1e-2);
  EXPECT_DOUBLE_EQ(value_at(rate, 0.5), 1e-3);
  EXPECT_DOUBLE_EQ(value_at(rate, 0.25), 0.000316228);
  EXPECT_EQ(text_of(rate, value_at(rate, 0.25)), "0.000316228");
}

TEST(Space, WholeNumbersKeepTheirStepAndAreEquallyLikely) {
  const Dimension batch = whole("batch", 8, 30, 8);
  EXPECT_EQ(levels(batch), 3u);
  std::map<double, int> seen;
  for (int i = 0; i < 300; ++i) ++seen[value_at(batch, (i + 0.5) / 300.0)];
  EXPECT_THAT(seen, ElementsAre(Pair(8.0, 100), Pair(16.0, 100), Pair(24.0, 100)));
  EXPECT_EQ(value_at(batch, 1.0), 24.0);
  EXPECT_EQ(share_of(batch, 16.0), 0.5);
  EXPECT_EQ(value_near(batch, 0.7), 16.0);
  EXPECT_EQ(value_near(batch, 0.8), 24.0);
  EXPECT_EQ(value_near(batch, -3.0), 8.0);
  EXPECT_EQ(levels(whole("wide", -(std::int64_t{1} << 52), std::int64_t{1} << 52)),
            (std::uint64_t{1} << 53) + 1);
}

TEST(Space, TextsOfAPointGiveItAgain) {
  const Space space = mixed_space();
  for (std::uint32_t trial = 0; trial < 200; ++trial) {
    const Point point = random_point(space, 7, trial);
    EXPECT_EQ(point_of(space, settings_of(space, point)), point);
  }
}

TEST(Space, FieldExistsOnlyWithTheValuesItHangsOn) {
  const Space space = hanging_space();
  EXPECT_EQ(settled(space, {0.0, 0.5, 0.25, 1.0, 2.0}), (Point{0.0, 0.5, 0.25, kAbsent, kAbsent}));
  EXPECT_EQ(settled(space, {2.0, 0.5, 0.25, 1.0, 2.0}), (Point{2.0, 0.5, kAbsent, 1.0, 2.0}));
  EXPECT_EQ(settled(space, {1.0, 0.5, 0.25, 0.0, 2.0}), (Point{1.0, 0.5, kAbsent, 0.0, kAbsent}));
  const Settings settings{{"optimiser", "adam"}, {"rate", "0.5"}, {"beta", "0.25"}};
  EXPECT_EQ(settings_of(space, {0.0, 0.5, 0.25, kAbsent, kAbsent}), settings);
  EXPECT_EQ(point_of(space, settings), (Point{0.0, 0.5, 0.25, kAbsent, kAbsent}));
  // One that does not exist has no value, and one that exists has.
  EXPECT_FALSE(point_of(space, {{"optimiser", "sgd"}, {"rate", "0.5"}, {"beta", "0.25"}}));
  EXPECT_FALSE(point_of(space, {{"optimiser", "adam"}, {"rate", "0.5"}}));
  EXPECT_FALSE(point_of(
      space, {{"optimiser", "adam"}, {"rate", "0.5"}, {"beta", "0.25"}, {"nesterov", "yes"}}));
}

TEST(Space, ForeignSettingsAreNoPoint) {
  const Space space = mixed_space();
  const Settings right{{"rate", "0.01"}, {"share", "0.5"}, {"batch", "16"}, {"optimiser", "sgd"}};
  ASSERT_TRUE(point_of(space, right));
  for (std::size_t i = 0; i < right.size(); ++i) {
    for (const char* wrong : {"1000", "-7", "x", "", "1e", "nan", "Adam"}) {
      Settings settings = right;
      settings[i].second = wrong;
      EXPECT_FALSE(point_of(space, settings)) << right[i].first << " " << wrong;
    }
  }
  Settings missing = right;
  missing.pop_back();
  EXPECT_FALSE(point_of(space, missing));
  Settings other = right;
  other[0].first = "rates";
  EXPECT_FALSE(point_of(space, other));
}

}  // namespace
}  // namespace troupe::study
