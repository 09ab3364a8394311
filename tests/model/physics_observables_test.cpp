#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "model/physics/histogram.h"
#include "model/physics/observables.h"
#include "tests/model/physics_samples.h"

namespace troupe::model {
namespace {

TEST(Histogram, OverflowHasABinOfItsOwnAndSeparationGoesFromZeroToOne) {
  Histogram a(10.0, 5), b(10.0, 5);
  for (const double value : {0.0, 1.9, 2.0, 9.99, 10.0, 1e6}) a.add(value);
  EXPECT_EQ(a.counts(), (std::vector<std::int64_t>{2, 1, 0, 0, 1, 2}));
  EXPECT_EQ(separation_power(a, a), 0.0);
  EXPECT_EQ(separation_power(b, b), 0.0);
  EXPECT_EQ(separation_power(a, b), 1.0);
  b.add(5.0);
  EXPECT_DOUBLE_EQ(separation_power(a, b), 1.0);
  // Half and half against all in one: 1/2 [(1/2)^2 / (3/2) + (1/2)^2 / (1/2)] = 1/3.
  Histogram c(10.0, 5), d(10.0, 5);
  c.add(1.0);
  c.add(3.0);
  d.add(1.0);
  EXPECT_DOUBLE_EQ(separation_power(c, d), 1.0 / 3.0);
}

TEST(ImageUnits, PowerAndScaleAreUndoneAndNegativeCellsBecomeZero) {
  const float gev = 0.037F;
  const ImageUnits units{0.85, 50.0};
  const std::vector<float> cells{static_cast<float>(std::pow(50.0 * 0.037, 0.85)), 0.0F, -1.0F,
                                 std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> found(cells.size());
  to_gev(cells, units, found);
  EXPECT_NEAR(found[0], gev, 1e-8);
  EXPECT_EQ(found[1], 0.0F);
  EXPECT_EQ(found[2], 0.0F);
  EXPECT_TRUE(std::isnan(found[3]));
  to_gev(cells, {}, found);
  EXPECT_EQ(found[0], cells[0]);
}

TEST(ShowerMeter, SeparableShowerHasTheMomentsOfItsParts) {
  const std::vector<double> x{0, 1, 2, 1, 0}, y{1, 0, 0, 1}, z{4, 3, 2, 1, 0, 0, 0};
  ShowerMeter meter(kSampleSpace, 1.5, false);
  const ShowerObservables& shower = meter.measure(separable_image(x, y, z));
  ASSERT_TRUE(shower.valid);
  EXPECT_FALSE(shower.empty());
  EXPECT_DOUBLE_EQ(shower.ecal_gev, 4.0 * 2.0 * 10.0);
  EXPECT_EQ(shower.profile[0], (std::vector<double>{0, 20, 40, 20, 0}));
  EXPECT_EQ(shower.profile[1], (std::vector<double>{40, 0, 0, 40}));
  EXPECT_EQ(shower.profile[2], (std::vector<double>{32, 24, 16, 8, 0, 0, 0}));
  EXPECT_EQ(shower.moments[0], (std::array<double, 3>{2.0, 0.5, 0.0}));
  EXPECT_EQ(shower.moments[1], (std::array<double, 3>{1.5, 2.25, 0.0}));
  // z: 0, 1, 2, 3 with weights .4 .3 .2 .1: mean 1, variance 1, third central moment 0.6.
  EXPECT_DOUBLE_EQ(shower.moments[2][0], 1.0);
  EXPECT_DOUBLE_EQ(shower.moments[2][1], 1.0);
  EXPECT_DOUBLE_EQ(shower.moments[2][2], 0.6);
  // Thirds of 7 layers are 0-1, 2-3 and 4-6.
  EXPECT_DOUBLE_EQ(shower.depth_fractions[0], 0.7);
  EXPECT_DOUBLE_EQ(shower.depth_fractions[1], 0.3);
  EXPECT_DOUBLE_EQ(shower.depth_fractions[2], 0.0);
  EXPECT_EQ(shower.maximum, (std::array<std::int64_t, 3>{2, 0, 0}));
  // Above 1.5 GeV: z parts 4, 3, 2 for x = 1, 3 (factor 1) and all four for x = 2 (factor 2),
  // twice.
  EXPECT_EQ(shower.hits, 2 * (3 + 3 + 4));
  EXPECT_EQ(shower.cells_above[0], 2 * 3 * 4);
  EXPECT_EQ(shower.cells_above[13], 2 * (3 + 3 + 4));  // above 1 GeV
}

TEST(ShowerMeter, EmptyShowerIsValidAndHasNoMoments) {
  ShowerMeter meter(kSampleSpace, 3e-4, true);
  meter.measure(separable_image({1, 1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1}));
  const ShowerObservables& shower = meter.measure(empty_image());
  EXPECT_TRUE(shower.valid);
  EXPECT_TRUE(shower.empty());
  EXPECT_EQ(shower.moments, (std::array<std::array<double, 3>, 3>{}));
  EXPECT_EQ(shower.depth_fractions, (std::array<double, 3>{}));
  EXPECT_EQ(shower.maximum, (std::array<std::int64_t, 3>{}));
  EXPECT_EQ(shower.hits, 0);
  EXPECT_EQ(shower.angle_rad, 100.0);
}

TEST(ShowerMeter, SingleCellIsItsOwnCentreWithoutWidth) {
  Image image = empty_image();
  image[cell_index(kSampleSpace, 3, 1, 6)] = 0.25F;
  ShowerMeter meter(kSampleSpace, 3e-4, false);
  const ShowerObservables& shower = meter.measure(image);
  EXPECT_EQ(shower.moments[0], (std::array<double, 3>{3.0, 0.0, 0.0}));
  EXPECT_EQ(shower.moments[1], (std::array<double, 3>{1.0, 0.0, 0.0}));
  EXPECT_EQ(shower.moments[2], (std::array<double, 3>{6.0, 0.0, 0.0}));
  EXPECT_EQ(shower.maximum, (std::array<std::int64_t, 3>{3, 1, 6}));
  EXPECT_EQ(shower.depth_fractions, (std::array<double, 3>{0.0, 0.0, 1.0}));
  EXPECT_EQ(shower.hits, 1);
}

TEST(ShowerMeter, NotFiniteNegativeAndImpossibleCellsMakeAnInvalidShower) {
  ShowerMeter meter(kSampleSpace, 3e-4, true);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(), -1e-3F, 2e6F}) {
    Image image = empty_image();
    image[17] = bad;
    EXPECT_FALSE(meter.measure(image).valid) << bad;
  }
  EXPECT_FALSE(meter.measure(Image(5 * 4 * 7, 1e5F)).valid);
  EXPECT_TRUE(meter.measure(Image(5 * 4 * 7, 1e3F)).valid);
}

TEST(ShowerMeter, AngleIsThatOfTheTrack) {
  // One cell per layer on a straight line in y and z: the slope is the tangent.
  const Extent space{3, 16, 8};
  for (const int slope : {-1, 0, 1}) {
    Image image = empty_image(space);
    for (std::int64_t z = 0; z < 8; ++z) image[cell_index(space, 1, 8 + slope * (z - 4), z)] = 1.0F;
    ShowerMeter meter(space, 3e-4, true);
    const double expected = std::numbers::pi / 2 - slope * std::numbers::pi / 4;
    EXPECT_NEAR(meter.measure(image).angle_rad, expected, 1e-6) << slope;
  }
}

TEST(ShowerMeterDeathTest, ImageOfAnotherSizeIsADefect) {
  ShowerMeter meter(kSampleSpace, 3e-4, false);
  EXPECT_DEATH(meter.measure(Image(3)), "size");
}

}  // namespace
}  // namespace troupe::model
