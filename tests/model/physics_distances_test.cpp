// The distances against scipy 1.10 (ks_2samp, wasserstein_distance, chi2_contingency, sqrtm,
// gaussian_filter) on numbers that a formula gives.

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/physics/feature_distances.h"
#include "model/physics/image_similarity.h"
#include "model/physics/paired_values.h"
#include "model/physics/shower_sketch.h"
#include "tests/model/physics_samples.h"

namespace troupe::model {
namespace {

using Counts = std::vector<std::uint32_t>;

std::vector<double> remainders(int count, int factor, int shift, int modulus, double divisor) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back((i * factor + shift) % modulus / divisor);
  return values;
}

Counts cycling(std::size_t count, std::uint32_t first) {
  Counts times(count);
  for (std::size_t i = 0; i < count; ++i) times[i] = (static_cast<std::uint32_t>(i) + first) % 3;
  return times;
}

class PairedValuesTest : public testing::Test {
 protected:
  const std::vector<double> x_ = remainders(40, 37, 0, 101, 10);
  const std::vector<double> y_ = remainders(30, 53, 7, 89, 8);
  const Counts ones_x_ = Counts(40, 1), ones_y_ = Counts(30, 1);
  const PairedValues paired_{x_, y_, 0.0, 10.0, 8};
};

TEST_F(PairedValuesTest, DistancesAreThoseOfScipy) {
  EXPECT_NEAR(paired_.kolmogorov(ones_x_, ones_y_), 0.09166666666666666, 1e-14);
  EXPECT_NEAR(paired_.wasserstein(ones_x_, ones_y_), 0.14031652891931884, 1e-14);
  EXPECT_NEAR(paired_.separation(ones_x_, ones_y_), 0.054410644062596526, 1e-14);
  EXPECT_NEAR(paired_.chi_square(ones_x_, ones_y_), 0.5178872053872053, 1e-13);
}

TEST_F(PairedValuesTest, ValueThatCountsTwiceIsTwoValues) {
  EXPECT_NEAR(paired_.kolmogorov(cycling(40, 0), cycling(30, 1)), 0.10256410256410256, 1e-14);
  EXPECT_NEAR(paired_.wasserstein(cycling(40, 0), cycling(30, 1)), 0.14621946585345585, 1e-14);
}

TEST_F(PairedValuesTest, EqualSamplesAreNotApartAndDisjointOnesWholly) {
  const PairedValues equal(x_, x_, 0.0, 10.0, 8);
  EXPECT_EQ(equal.kolmogorov(ones_x_, ones_x_), 0.0);
  EXPECT_EQ(equal.wasserstein(ones_x_, ones_x_), 0.0);
  EXPECT_EQ(equal.separation(ones_x_, ones_x_), 0.0);
  EXPECT_EQ(equal.chi_square(ones_x_, ones_x_), 0.0);
  std::vector<double> far = x_;
  for (double& value : far) value += 1000.0;
  const PairedValues disjoint(x_, far, 0.0, 2000.0, 8);
  EXPECT_EQ(disjoint.kolmogorov(ones_x_, ones_x_), 1.0);
  EXPECT_EQ(disjoint.separation(ones_x_, ones_x_), 1.0);
}

TEST_F(PairedValuesTest, EmptySampleIsFarFromAnyButGivesNumbers) {
  const PairedValues none(x_, {}, 0.0, 10.0, 8);
  EXPECT_EQ(none.kolmogorov(ones_x_, {}), 1.0);
  EXPECT_EQ(none.wasserstein(ones_x_, {}), 1.0);
  EXPECT_EQ(none.separation(ones_x_, {}), 1.0);
  EXPECT_EQ(none.chi_square(ones_x_, {}), 0.0);
}

class FeatureDistances : public testing::Test {
 protected:
  FeatureDistances() {
    for (int i = 0; i < 25; ++i) {
      for (int k = 0; k < 3; ++k) a_.values.push_back(i * (7 + 3 * k) % 23 / 10.0 + 0.1 * k);
    }
    for (int i = 0; i < 20; ++i) {
      for (int k = 0; k < 3; ++k) b_.values.push_back(i * (5 + 2 * k) % 19 / 9.0);
    }
    scale_by_data(a_, b_);
  }

  FeatureTable a_{3, {}}, b_{3, {}};
};

TEST_F(FeatureDistances, FrechetIsThatOfScipy) {
  EXPECT_NEAR(frechet_distance(a_, Counts(25, 1), b_, Counts(20, 1)), 0.08344018753902983, 1e-12);
  EXPECT_NEAR(frechet_distance(a_, cycling(25, 0), b_, cycling(20, 1)), 0.06422349603672992, 1e-12);
  EXPECT_NEAR(frechet_distance(a_, Counts(25, 1), a_, Counts(25, 1)), 0.0, 1e-12);
  EXPECT_EQ(frechet_distance(a_, Counts(25, 0), b_, Counts(20, 1)), 0.0);
  for (std::uint32_t draw = 0; draw < 5; ++draw) {
    FeatureTable few{64, {}};
    for (std::uint32_t i = 0; i < 10 * 64; ++i) {
      few.values.push_back(100.0 * runtime::random_normal({1, draw, 0, 0, 0}, i));
    }
    const double distance = frechet_distance(few, Counts(10, 1), few, Counts(10, 1));
    EXPECT_GE(distance, 0.0);
    EXPECT_NEAR(distance, 0.0, 1.0) << "of a trace of " << 64 * 1e4;
  }
}

TEST_F(FeatureDistances, KernelIsThatOfNumpy) {
  const KernelDistance kernel(a_, b_);
  EXPECT_NEAR(kernel.distance(Counts(25, 1), Counts(20, 1)), 0.032271393009037475, 1e-12);
}

FeatureTable normal_vectors(std::uint64_t seed, std::uint32_t count, std::size_t size,
                            double shift) {
  FeatureTable table{size, {}};
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t k = 0; k < size; ++k) {
      table.values.push_back(shift + runtime::random_normal({seed, i, 0, 0, 0}, k));
    }
  }
  return table;
}

// Of two normal distributions that are 0.5 apart in each of 4 features: 4 x 0.25.
TEST(FrechetIntercept, HasNoBiasOfFewEvents) {
  double sum = 0.0, plain = 0.0;
  constexpr int kTrials = 20;
  const Counts all(120, 1);
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
    const FeatureTable a = normal_vectors(2 * trial, 120, 4, 0.0);
    const FeatureTable b = normal_vectors(2 * trial + 1, 120, 4, 0.5);
    sum += frechet_intercept(a, b, trial) / kTrials;
    plain += frechet_distance(a, all, b, all) / kTrials;
  }
  EXPECT_NEAR(sum, 1.0, 0.1);
  EXPECT_GT(plain, sum + 0.05);
}

TEST(KernelDistance, OfOneDistributionIsZeroOnAverageAlsoForDrawsFromOneSample) {
  double across = 0.0, within = 0.0;
  constexpr int kTrials = 30;
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
    const FeatureTable a = normal_vectors(2 * trial, 60, 3, 0.0);
    const FeatureTable b = normal_vectors(2 * trial + 1, 60, 3, 0.0);
    across += KernelDistance(a, b).distance(Counts(60, 1), Counts(60, 1)) / kTrials;
    Counts first(60), second(60);
    for (std::uint32_t i = 0; i < 60; ++i) {
      ++first[runtime::random_word({trial, i, 0, 0, 0}, 0) % 60];
      ++second[runtime::random_word({trial, i, 0, 0, 0}, 1) % 60];
    }
    within += KernelDistance(a, a).distance(first, second, true) / kTrials;
  }
  const FeatureTable a = normal_vectors(1, 60, 3, 0.0), far = normal_vectors(2, 60, 3, 1.0);
  const double apart = KernelDistance(a, far).distance(Counts(60, 1), Counts(60, 1));
  EXPECT_GT(apart, 2.0);
  EXPECT_LT(std::abs(across), 0.2 * apart);
  EXPECT_LT(std::abs(within), 0.2 * apart);
}

Image image_of(const Extent& space, int p, int q) {
  Image image;
  for (std::int64_t x = 0; x < space[0]; ++x) {
    for (std::int64_t y = 0; y < space[1]; ++y) {
      for (std::int64_t z = 0; z < space[2]; ++z) {
        image.push_back(
            static_cast<float>(static_cast<double>((x * p + y * q + z * 3) % 17) / 1000));
      }
    }
  }
  return image;
}

TEST(StructuralSimilarity, IsThatOfScipysFilter) {
  const Extent wide{13, 12, 2}, narrow{5, 4, 7};
  EXPECT_NEAR(structural_similarity(image_of(wide, 5, 7), image_of(wide, 6, 7), wide, 1e-2),
              -0.32642091740819174, 1e-9);
  EXPECT_NEAR(structural_similarity(image_of(narrow, 5, 7), image_of(narrow, 4, 7), narrow, 1e-2),
              0.4178105919054638, 1e-9);
  EXPECT_NEAR(structural_similarity(image_of(wide, 5, 7), image_of(wide, 5, 7), wide, 1e-2), 1.0,
              1e-12);
}

TEST(Neighbours, AreTheNearestOthers) {
  const std::vector<float> points{0, 0, 3, 4, 3, 3, 10, 0};
  EXPECT_EQ(nearest_squares(points, points, 2, true), (std::vector<double>{18, 1, 1, 58}));
  EXPECT_EQ(nearest_squares(points, points, 2, false), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_TRUE(std::isinf(nearest_squares(points, {}, 2, false)[0]));
  EXPECT_TRUE(
      std::isinf(nearest_squares(std::vector<float>{1, 1}, std::vector<float>{1, 1}, 2, true)[0]));
}

// More than are looked at at a time, on a grid so that the truth is known.
TEST(Neighbours, AreFoundAmongAnyNumber) {
  std::vector<float> points;
  for (int i = 0; i < 9025; ++i) {
    const int mixed = i * 7 % 9025;
    points.push_back(static_cast<float>(mixed % 95 - 47));
    points.push_back(static_cast<float>(mixed / 95 - 47));
  }
  EXPECT_THAT(nearest_squares(points, points, 2, true), testing::Each(1.0));
  const std::vector<float> asked{40.25F, 3.0F, 50.0F, -47.0F};
  EXPECT_EQ(nearest_squares(asked, points, 2, false), (std::vector<double>{0.0625, 9.0}));
}

TEST(PairedValues, SeparationOfTurnedIsThatOfTheSamplesAfterwards) {
  const std::vector<double> a{0.1, 0.2, 0.9, 0.8}, b{0.15, 0.7, 0.75};
  const std::vector<double> first{0.1, 0.9, 0.7}, second{0.2, 0.8, 0.15, 0.75};
  const PairedValues paired(a, b, 0.0, 1.0, 5), after(first, second, 0.0, 1.0, 5);
  const std::vector<std::uint8_t> of_a{0, 1, 0, 1}, of_b{0, 1, 0};
  EXPECT_DOUBLE_EQ(paired.separation_of_turned(of_a, of_b),
                   after.separation(Counts(3, 1), Counts(4, 1)));
  EXPECT_DOUBLE_EQ(
      paired.separation_of_turned(std::vector<std::uint8_t>(4), std::vector<std::uint8_t>(3)),
      paired.separation(Counts(4, 1), Counts(3, 1)));
}

TEST(Sketch, KeepsDistancesOfShapes) {
  const auto distance = [](const Image& a, const Image& b) {
    const ShowerSketch of_a = sketch_of(a), of_b = sketch_of(b);
    double square = 0.0;
    for (std::size_t i = 0; i < kSketchSize; ++i) {
      square += std::pow(static_cast<double>(of_a[i] - of_b[i]), 2.0);
    }
    return std::sqrt(square);
  };
  const auto exact = [](const Image& a, const Image& b) {
    const double all_a = std::accumulate(a.begin(), a.end(), 0.0);
    const double all_b = std::accumulate(b.begin(), b.end(), 0.0);
    double square = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double difference = std::sqrt(static_cast<double>(a[i]) / all_a) -
                                std::sqrt(static_cast<double>(b[i]) / all_b);
      square += difference * difference;
    }
    return std::sqrt(square);
  };
  const std::vector<SampleEvent> sample = random_sample(7, 40);
  double ratio = 0.0;
  for (std::size_t i = 0; i + 1 < sample.size(); ++i) {
    const double found = distance(sample[i].gev, sample[i + 1].gev);
    ratio += found / exact(sample[i].gev, sample[i + 1].gev) / 39.0;
  }
  EXPECT_NEAR(ratio, 1.0, 0.05);
  Image scaled = sample[0].gev;
  for (float& cell : scaled) cell *= 3.0F;
  EXPECT_NEAR(distance(sample[0].gev, scaled), 0.0, 1e-5);  // a shape has no energy
  EXPECT_EQ(distance(empty_image(), empty_image()), 0.0);
}

}  // namespace
}  // namespace troupe::model
