#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "model/physics/shower_statistics.h"
#include "tests/model/physics_samples.h"

namespace troupe::model {
namespace {

StatisticsOptions sample_options() {
  StatisticsOptions options;
  options.space = kSampleSpace;
  return options;
}

void expect_same(const ShowerGroup& a, const ShowerGroup& b) {
  EXPECT_EQ(a.events(), b.events());
  EXPECT_EQ(a.empty_events(), b.empty_events());
  EXPECT_EQ(a.invalid_events(), b.invalid_events());
  const auto expect_spread = [](const Spread& x, const Spread& y) {
    EXPECT_EQ(x.mean, y.mean);
    EXPECT_EQ(x.deviation, y.deviation);
  };
  expect_spread(a.sampling_fraction(), b.sampling_fraction());
  expect_spread(a.ecal_gev(), b.ecal_gev());
  expect_spread(a.hits(), b.hits());
  expect_spread(a.cells_above(9), b.cells_above(9));
  for (std::size_t axis = 0; axis < 3; ++axis) {
    EXPECT_EQ(a.mean_profile(axis), b.mean_profile(axis));
    EXPECT_EQ(a.maximum_counts(axis), b.maximum_counts(axis));
    for (std::size_t k = 1; k <= 3; ++k) EXPECT_EQ(a.mean_moment(axis, k), b.mean_moment(axis, k));
  }
  EXPECT_EQ(a.mean_depth_fractions(), b.mean_depth_fractions());
  EXPECT_EQ(a.ecal_histogram().counts(), b.ecal_histogram().counts());
  EXPECT_EQ(a.correlations(), b.correlations());
  EXPECT_EQ(a.mean_angle_error(), b.mean_angle_error());
}

void expect_same(const ShowerStatistics& a, const ShowerStatistics& b) {
  expect_same(a.all(), b.all());
  ASSERT_EQ(a.bins().size(), b.bins().size());
  for (std::size_t i = 0; i < a.bins().size(); ++i) expect_same(a.bins()[i], b.bins()[i]);
}

TEST(ShowerStatistics, FiguresAreTheMeansOverTheEvents) {
  ShowerStatistics statistics(sample_options());
  const Image first = separable_image({0, 1, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 0, 0, 0, 0, 0});
  const Image second = separable_image({0, 0, 0, 1, 0}, {0, 1, 0, 0}, {0, 0, 0, 2, 2, 2, 0});
  statistics.add(first, 100.0);   // ecal 2, sampling fraction 0.02
  statistics.add(second, 150.0);  // ecal 6, sampling fraction 0.04
  const ShowerGroup& all = statistics.all();
  EXPECT_EQ(all.events(), 2);
  EXPECT_NEAR(all.sampling_fraction().mean, 0.03, 1e-14);
  EXPECT_NEAR(all.sampling_fraction().deviation, 0.01, 1e-12);
  EXPECT_DOUBLE_EQ(all.ecal_gev().mean, 4.0);
  EXPECT_DOUBLE_EQ(all.ecal_gev().deviation, 2.0);
  EXPECT_DOUBLE_EQ(all.hits().mean, 2.5);
  EXPECT_EQ(all.mean_profile(0), (std::vector<double>{0, 1, 0, 3, 0}));
  EXPECT_EQ(all.mean_profile(1), (std::vector<double>{0, 4, 0, 0}));
  EXPECT_EQ(all.mean_profile(2), (std::vector<double>{0.5, 0.5, 0, 1, 1, 1, 0}));
  // Moments are per event first: (1 + 3) / 2, not the energy-weighted 2.5.
  EXPECT_DOUBLE_EQ(all.mean_moment(0, 1), 2.0);
  EXPECT_DOUBLE_EQ(all.mean_moment(0, 2), 0.0);
  EXPECT_NEAR(all.mean_moment(2, 2), (0.25 + 2.0 / 3.0) / 2.0, 1e-14);
  EXPECT_DOUBLE_EQ(all.mean_depth_fractions()[0], 0.5);
  EXPECT_EQ(all.maximum_counts(0), (std::vector<std::int64_t>{0, 1, 0, 1, 0}));
  EXPECT_DOUBLE_EQ(all.cells_above(13).mean, 1.5 / 140.0);  // 0 and 3 cells above 1 GeV
  EXPECT_EQ(all.ecal_histogram().entries(), 2);
  EXPECT_FALSE(all.mean_angle_error().has_value());
}

TEST(ShowerStatistics, EveryOrderAndEverySplitGiveTheSameBits) {
  std::vector<SampleEvent> sample = random_sample(1, 200);
  sample[5].gev = empty_image();
  sample[6].gev[0] = std::numeric_limits<float>::quiet_NaN();
  StatisticsOptions options = sample_options();
  options.angle = true;
  ShowerStatistics in_order(options), reversed(options), half(options), other_half(options);
  for (const SampleEvent& event : sample) in_order.add(event.gev, event.energy_gev, 1.5);
  std::size_t index = 0;
  for (const SampleEvent& event : sample) {
    (index++ % 3 == 0 ? half : other_half).add(event.gev, event.energy_gev, 1.5);
  }
  std::reverse(sample.begin(), sample.end());
  for (const SampleEvent& event : sample) reversed.add(event.gev, event.energy_gev, 1.5);
  other_half.merge(half);
  EXPECT_EQ(in_order.all().events(), 199);
  EXPECT_EQ(in_order.all().empty_events(), 1);
  expect_same(in_order, reversed);
  expect_same(in_order, other_half);
}

TEST(ShowerStatistics, EmptyShowersLowerTheEnergyButNotTheMoments) {
  const Image shower = separable_image({0, 1, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 0, 0, 0, 0, 0});
  ShowerStatistics statistics(sample_options());
  statistics.add(shower, 100.0);
  statistics.add(empty_image(), 100.0);
  const ShowerGroup& all = statistics.all();
  EXPECT_EQ(all.events(), 2);
  EXPECT_EQ(all.empty_events(), 1);
  EXPECT_NEAR(all.sampling_fraction().mean, 0.01, 1e-14);
  EXPECT_DOUBLE_EQ(all.mean_moment(2, 1), 0.5);
  EXPECT_DOUBLE_EQ(all.mean_depth_fractions()[0], 1.0);
}

TEST(ShowerStatistics, InvalidShowersAndEnergiesAreCountedAndLeftOut) {
  ShowerStatistics statistics(sample_options());
  Image bad = empty_image();
  bad[3] = -1.0F;
  statistics.add(bad, 100.0);
  const Image good = separable_image({0, 1, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 0, 0, 0, 0, 0});
  for (const double energy : {0.0, -5.0, 1e9, std::numeric_limits<double>::quiet_NaN()}) {
    statistics.add(good, energy);
  }
  EXPECT_EQ(statistics.all().events(), 0);
  EXPECT_EQ(statistics.all().invalid_events(), 5);
  EXPECT_EQ(statistics.bins()[0].invalid_events(), 2);  // the bad one at its upper edge, and 0 GeV
  EXPECT_EQ(statistics.all().sampling_fraction().mean, 0.0);
}

TEST(ShowerStatistics, EveryEnergyIsFoundInItsBins) {
  StatisticsOptions options = sample_options();
  options.energy_bins = {{105.0, 115.0}, {145.0, 155.0}, {185.0, 195.0}, {0.0, 1000.0}};
  ShowerStatistics statistics(options);
  const Image shower = separable_image({0, 1, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 0, 0, 0, 0, 0});
  for (const double energy : {104.9, 105.0, 115.0, 150.0, 300.0}) statistics.add(shower, energy);
  EXPECT_EQ(statistics.bins()[0].events(), 2);
  EXPECT_EQ(statistics.bins()[1].events(), 1);
  EXPECT_EQ(statistics.bins()[2].events(), 0);
  EXPECT_EQ(statistics.bins()[3].events(), 5);
  const std::vector<EnergyBin> equal = equal_energy_bins(0.0, 500.0, 5);
  EXPECT_EQ(equal.front(), (EnergyBin{0.0, 100.0}));
  EXPECT_EQ(equal.back(), (EnergyBin{400.0, 500.0}));
}

TEST(ShowerStatistics, AngleErrorIsRelativeToTheReferenceAndOneWhenEmpty) {
  StatisticsOptions options = sample_options();
  options.angle = true;
  ShowerStatistics statistics(options);
  // Along z at constant x and y: pi / 2.
  const Image straight = separable_image({0, 1, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 1, 1, 1, 1, 1});
  const double half_pi = std::numbers::pi / 2;
  EXPECT_NEAR(statistics.add(straight, 50.0, half_pi * 0.8).angle_rad, half_pi, 1e-6);
  EXPECT_NEAR(*statistics.all().mean_angle_error(), 0.25, 1e-6);
  statistics.add(empty_image(), 50.0, half_pi);
  EXPECT_NEAR(*statistics.all().mean_angle_error(), 0.625, 1e-6);
  statistics.add(straight, 50.0, 100.0);  // the reference was an empty shower
  statistics.add(straight, 50.0);
  EXPECT_NEAR(*statistics.all().mean_angle_error(), 0.625, 1e-6);
}

TEST(ShowerStatistics, CorrelationsAreThoseOfTheFeatures) {
  // One cell at varying depth, energy proportional to the depth: z1, ecal and the primary energy go
  // together; everything transverse is constant.
  ShowerStatistics statistics(sample_options());
  for (std::int64_t z = 0; z < 7; ++z) {
    Image image = empty_image();
    image[cell_index(kSampleSpace, 2, 2, z)] = 1.0F + static_cast<float>(z);
    statistics.add(image, 100.0 - 10.0 * static_cast<double>(z));
  }
  const auto correlations = statistics.all().correlations();
  const auto pair = [](std::size_t i, std::size_t j) {
    return i * kCorrelationFeatures - i * (i + 1) / 2 + (j - i - 1);
  };
  EXPECT_NEAR(*correlations[pair(4, 6)], 1.0, 1e-12);   // z1, ecal
  EXPECT_NEAR(*correlations[pair(4, 7)], -1.0, 1e-12);  // z1, primary energy
  EXPECT_FALSE(correlations[pair(0, 4)].has_value());   // x1 does not vary
  EXPECT_FALSE(correlations[pair(4, 8)].has_value());   // nor do the hits
  EXPECT_LT(*correlations[pair(4, 9)], -0.7);           // deeper showers have less in front
}

TEST(ShowerStatisticsDeathTest, DifferentOptionsDoNotMerge) {
  StatisticsOptions other = sample_options();
  other.hit_threshold_gev = 1e-3;
  ShowerStatistics a(sample_options());
  EXPECT_DEATH(a.merge(ShowerStatistics(other)), "options");
}

}  // namespace
}  // namespace troupe::model
