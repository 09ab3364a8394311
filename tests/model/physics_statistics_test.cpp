#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/physics/shower_sample.h"
#include "tests/model/physics_samples.h"

namespace troupe::model {
namespace {

using testing::DoubleNear;
using testing::Pointwise;

StatisticsOptions sample_options() {
  StatisticsOptions options;
  options.space = kSampleSpace;
  return options;
}

TEST(ShowerStatistics, FiguresAreTheMeansOverTheEvents) {
  ShowerSample sample(sample_options());
  const Image first = separable_image({0, 1, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 0, 0, 0, 0, 0});
  const Image second = separable_image({0, 0, 0, 1, 0}, {0, 1, 0, 0}, {0, 0, 0, 2, 2, 2, 0});
  sample.add(first, 100.0);   // ecal 2, sampling fraction 0.02
  sample.add(second, 150.0);  // ecal 6, sampling fraction 0.04
  const ShowerStatistics statistics = sample.statistics();
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

TEST(ShowerStatistics, ShowerThatCountsTwiceIsAsGoodAsTwo) {
  const std::vector<SampleEvent> events = random_sample(1, 20);
  StatisticsOptions options = sample_options();
  options.angle = true;
  ShowerSample sample(options), repeated(options);
  std::vector<std::uint32_t> times;
  for (std::uint32_t i = 0; i < events.size(); ++i) {
    const SampleEvent& event = events[i];
    sample.add(event.gev, event.energy_gev, 1.5);
    times.push_back(i % 4);
    for (std::uint32_t k = 0; k < i % 4; ++k) repeated.add(event.gev, event.energy_gev, 1.5);
  }
  const ShowerStatistics weighted = sample.statistics(times), counted = repeated.statistics();
  const ShowerGroup &a = weighted.all(), &b = counted.all();
  EXPECT_EQ(a.events(), b.events());
  EXPECT_EQ(weighted.bins()[2].events(), counted.bins()[2].events());
  for (std::size_t i = 0; i < shower_observables().size(); ++i) {
    EXPECT_NEAR(a.spread(i).mean, b.spread(i).mean, 1e-12);
    EXPECT_NEAR(a.spread(i).deviation, b.spread(i).deviation, 1e-12);
  }
  EXPECT_NEAR(a.cells_above(9).deviation, b.cells_above(9).deviation, 1e-12);
  EXPECT_NEAR(*a.mean_angle_error(), *b.mean_angle_error(), 1e-12);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    EXPECT_THAT(a.mean_profile(axis), Pointwise(DoubleNear(1e-12), b.mean_profile(axis)));
    EXPECT_EQ(a.maximum_counts(axis), b.maximum_counts(axis));
    EXPECT_NEAR(a.mean_moment(axis, 2), b.mean_moment(axis, 2), 1e-12);
  }
  EXPECT_THAT(a.mean_sorted_layers(), Pointwise(DoubleNear(1e-12), b.mean_sorted_layers()));
  EXPECT_EQ(a.mean_spectrum(), b.mean_spectrum());
  EXPECT_EQ(a.ecal_histogram().counts(), b.ecal_histogram().counts());
  EXPECT_NEAR(*rms_difference(a.correlations(), b.correlations()), 0.0, 1e-9);
  EXPECT_NEAR(*rms_difference(a.share_correlations(), b.share_correlations()), 0.0, 1e-9);
}

TEST(ShowerStatistics, ObservablesOfTheTableAreTheFirstOfTheList) {
  EXPECT_EQ(&shower_observable("response"), &shower_observables()[0]);
  EXPECT_EQ(&shower_observable("ecal"), &shower_observables()[1]);
  EXPECT_EQ(&shower_observable("hits"), &shower_observables()[2]);
}

TEST(ShowerStatistics, LayersAreSortedShowerByShower) {
  ShowerSample sample(sample_options());
  sample.add(separable_image({0, 1, 0, 0, 0}, {0, 1, 0, 0}, {1, 3, 0, 0, 0, 0, 2}), 100.0);
  sample.add(separable_image({0, 1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0, 0, 5, 0}), 100.0);
  EXPECT_THAT(sample.statistics().all().mean_sorted_layers(),
              Pointwise(DoubleNear(1e-12), {4.0, 1.5, 0.5, 0.0, 0.0, 0.0, 0.0}));
}

TEST(ShowerStatistics, SpectrumHasTwoBinsToAnOctave) {
  Image image = empty_image();
  for (int i = 0; i < 3; ++i) image[static_cast<std::size_t>(i)] = 1.0F;  // [1, 1.41): bin 40
  image[7] = 1.5F;                                                        // [1.41, 2): bin 41
  image[8] = 1e-9F;                                                       // below all
  image[9] = 100.0F;                                                      // above all
  ShowerSample sample(sample_options());
  sample.add(image, 100.0);
  const auto spectrum = sample.statistics().all().mean_spectrum();
  EXPECT_EQ(spectrum[40], 3.0);
  EXPECT_EQ(spectrum[41], 1.0);
  EXPECT_EQ(spectrum.back(), 1.0);
  EXPECT_EQ(std::accumulate(spectrum.begin(), spectrum.end(), 0.0), 5.0);
  EXPECT_DOUBLE_EQ(spectrum_edge_gev(40), 1.0);
  EXPECT_DOUBLE_EQ(spectrum_edge_gev(41), std::numbers::sqrt2);
  EXPECT_DOUBLE_EQ(spectrum_edge_gev(kSpectrumBins), 16.0);
}

TEST(ShowerStatistics, EmptyShowersLowerTheEnergyButNotTheMoments) {
  const Image shower = separable_image({0, 1, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 0, 0, 0, 0, 0});
  ShowerSample sample(sample_options());
  sample.add(shower, 100.0);
  sample.add(empty_image(), 100.0);
  const ShowerStatistics statistics = sample.statistics();
  const ShowerGroup& all = statistics.all();
  EXPECT_EQ(all.events(), 2);
  EXPECT_EQ(all.empty_events(), 1);
  EXPECT_NEAR(all.sampling_fraction().mean, 0.01, 1e-14);
  EXPECT_DOUBLE_EQ(all.mean_moment(2, 1), 0.5);
  EXPECT_DOUBLE_EQ(all.mean_depth_fractions()[0], 1.0);
}

TEST(ShowerStatistics, InvalidShowersAndEnergiesAreCountedAndLeftOut) {
  ShowerSample sample(sample_options());
  Image bad = empty_image();
  bad[3] = -1.0F;
  sample.add(bad, 100.0);
  const Image good = separable_image({0, 1, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 0, 0, 0, 0, 0});
  for (const double energy : {0.0, -5.0, 1e9, std::numeric_limits<double>::quiet_NaN()}) {
    sample.add(good, energy);
  }
  EXPECT_EQ(sample.statistics().all().events(), 0);
  EXPECT_EQ(sample.statistics().all().invalid_events(), 5);
  EXPECT_EQ(sample.statistics().bins()[0].invalid_events(),
            2);  // the bad one at its upper edge, and 0 GeV
  EXPECT_EQ(sample.statistics().all().sampling_fraction().mean, 0.0);
}

TEST(ShowerStatistics, EveryEnergyIsFoundInItsBins) {
  StatisticsOptions options = sample_options();
  options.energy_bins = {{105.0, 115.0}, {145.0, 155.0}, {185.0, 195.0}, {0.0, 1000.0}};
  ShowerSample sample(options);
  const Image shower = separable_image({0, 1, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 0, 0, 0, 0, 0});
  for (const double energy : {104.9, 105.0, 115.0, 150.0, 300.0}) sample.add(shower, energy);
  EXPECT_EQ(sample.statistics().bins()[0].events(), 2);
  EXPECT_EQ(sample.statistics().bins()[1].events(), 1);
  EXPECT_EQ(sample.statistics().bins()[2].events(), 0);
  EXPECT_EQ(sample.statistics().bins()[3].events(), 5);
  const std::vector<EnergyBin> equal = equal_energy_bins(0.0, 500.0, 5);
  EXPECT_EQ(equal.front(), (EnergyBin{0.0, 100.0}));
  EXPECT_EQ(equal.back(), (EnergyBin{400.0, 500.0}));
}

TEST(ShowerStatistics, AngleErrorIsRelativeToTheReferenceAndOneWhenEmpty) {
  StatisticsOptions options = sample_options();
  options.angle = true;
  ShowerSample sample(options);
  // Along z at constant x and y: pi / 2.
  const Image straight = separable_image({0, 1, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 1, 1, 1, 1, 1});
  const double half_pi = std::numbers::pi / 2;
  EXPECT_NEAR(sample.add(straight, 50.0, half_pi * 0.8).angle_rad, half_pi, 1e-6);
  EXPECT_NEAR(*sample.statistics().all().mean_angle_error(), 0.25, 1e-6);
  sample.add(empty_image(), 50.0, half_pi);
  EXPECT_NEAR(*sample.statistics().all().mean_angle_error(), 0.625, 1e-6);
  sample.add(straight, 50.0, 100.0);  // the reference was an empty shower
  sample.add(straight, 50.0);
  EXPECT_NEAR(*sample.statistics().all().mean_angle_error(), 0.625, 1e-6);
}

TEST(ShowerStatistics, CorrelationsAreThoseOfTheFeatures) {
  // One cell at varying depth, energy proportional to the depth: z1, ecal and the primary energy go
  // together; everything transverse is constant.
  ShowerSample sample(sample_options());
  for (std::int64_t z = 0; z < 7; ++z) {
    Image image = empty_image();
    image[cell_index(kSampleSpace, 2, 2, z)] = 1.0F + static_cast<float>(z);
    sample.add(image, 100.0 - 10.0 * static_cast<double>(z));
  }
  const auto correlations = sample.statistics().all().correlations();
  const auto pair = [](std::size_t i, std::size_t j) {
    return i * kCorrelationFeatures - i * (i + 1) / 2 + (j - i - 1);
  };
  EXPECT_NEAR(*correlations[pair(4, 6)], 1.0, 1e-12);   // z1, ecal
  EXPECT_NEAR(*correlations[pair(4, 7)], -1.0, 1e-12);  // z1, primary energy
  EXPECT_FALSE(correlations[pair(0, 4)].has_value());   // x1 does not vary
  EXPECT_FALSE(correlations[pair(4, 8)].has_value());   // nor do the hits
  EXPECT_LT(*correlations[pair(4, 9)], -0.7);           // deeper showers have less in front
}

}  // namespace
}  // namespace troupe::model
