// Noise on images, and samplers that take it away again.

#include "model/diffusion.h"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::model {
namespace {

const std::vector<double> kLevels{0.01, 0.2, 0.5, 0.8, 0.99};

TEST(NoiseLevel, IsAPointOnTheCircleWithExactEnds) {
  for (const double level : kLevels) {
    const NoiseLevel at = noise_level(level);
    EXPECT_NEAR(at.signal * at.signal + at.noise * at.noise, 1.0, 1e-14);
    EXPECT_NEAR(std::atan2(at.noise, at.signal), std::acos(0.0) * level * level, 1e-14);
  }
  EXPECT_EQ(noise_level(0.0).noise, 0.0);
  EXPECT_EQ(noise_level(1.0).signal, 0.0);
  EXPECT_EQ(noise_level(1.0).noise, 1.0);
}

TEST(NoisyImages, HaveTheirLevelAndConditionsInEveryCell) {
  const std::vector<float> image{1, 2, 3, 4, 5, 6};  // three cells of two channels
  const std::vector<float> conditions{7, 8};
  std::vector<float> input(15);
  write_denoiser_input<float>(image, 2, 0.25, conditions, input.data());
  EXPECT_EQ(input, (std::vector<float>{1, 2, 0.25, 7, 8, 3, 4, 0.25, 7, 8, 5, 6, 0.25, 7, 8}));
  EXPECT_EQ(denoised_shape(Shape::image({3, 1, 1}, 5), 2), Shape::image({3, 1, 1}, 2));
  EXPECT_EQ(denoised_shape(Shape::image({3, 1, 1}, 2), 4).channels, 0);
}

// The clean image and its noise are turned into the noisy one and its velocity, and back.
TEST(NoisyImages, AreTurnedWithTheirNoiseByTheAngle) {
  constexpr std::int64_t kEvents = 3, kValues = 8, kChannels = 2;
  std::vector<float> images;
  for (int i = 0; i < kEvents * kValues; ++i) images.push_back(static_cast<float>(i) / 7);
  const std::vector<float> energies{0.5F, 1.5F, 2.5F};
  const std::vector<const float*> conditions{energies.data()};
  const CleanEvents clean{kEvents, kValues, kChannels, images.data(), conditions};
  const runtime::RandomPosition levels{7, 2, 3, 0, 9}, noise{7, 2, 3, 0, 10};
  std::vector<double> input(3 * 4 * 4), velocity(images.size());
  add_noise(clean, levels, noise, input.data(), velocity.data());
  for (std::uint32_t event = 0; event < kEvents; ++event) {
    const NoiseLevel at = noise_level(runtime::random_uniform(levels, event));
    for (std::uint32_t value = 0; value < kValues; ++value) {
      const std::uint32_t i = event * kValues + value;
      const double z = input[event * 16 + value / 2 * 4 + value % 2], v = velocity[i];
      EXPECT_NEAR(at.signal * z - at.noise * v, static_cast<double>(images[i]), 1e-12);
      EXPECT_NEAR(at.noise * z + at.signal * v, runtime::random_normal(noise, i), 1e-6);
    }
    for (std::size_t cell = 0; cell < 4; ++cell) {
      EXPECT_EQ(input[event * 16 + cell * 4 + 2],
                static_cast<double>(static_cast<float>(at.level)));
      EXPECT_EQ(input[event * 16 + cell * 4 + 3], static_cast<double>(energies[event]));
    }
  }
  std::vector<float> in_float(input.size()), velocity_in_float(velocity.size());
  add_noise(clean, levels, noise, in_float.data(), velocity_in_float.data());
  for (std::size_t i = 0; i < input.size(); ++i) EXPECT_FLOAT_EQ(in_float[i], float(input[i]));
}

// Takes a sample whose distribution in each value is a normal one of this mean and deviation. The
// velocity is the exact one: x is m + s^2 c (z - c m) / (c^2 s^2 + n^2) on average.
double sample_of(double mean, double deviation, float start, std::uint32_t steps) {
  std::vector<float> z{start}, before(1), velocity(1);
  for (const SamplerStep& step : sampler_steps(steps)) {
    const auto [level, c, n] = step.at;
    const double variance = deviation * deviation, at = static_cast<double>(z[0]);
    const double x = mean + variance * c * (at - c * mean) / (c * c * variance + n * n);
    velocity[0] = static_cast<float>((c * at - x) / n);
    take_step(step, velocity, z, before);
  }
  return static_cast<double>(z[0]);
}

TEST(Sampler, FindsWhatHasNoSpreadInAnyNumberOfSteps) {
  for (const std::uint32_t steps : {1U, 2U, 3U, 16U}) {
    EXPECT_NEAR(sample_of(0.75, 0.0, 1.5F, steps), 0.75, 1e-5) << steps;
  }
}

// Noise flows to where it stands in the distribution of samples, and twice the steps leave a
// quarter of the error.
TEST(Sampler, IsOfSecondOrder) {
  const double exact = 0.75 + 0.4 * 1.5;
  const double few = std::abs(sample_of(0.75, 0.4, 1.5F, 16) - exact);
  const double twice = std::abs(sample_of(0.75, 0.4, 1.5F, 32) - exact);
  EXPECT_LT(few, 0.02);
  EXPECT_GT(few, 3.0 * twice);
  EXPECT_GT(twice, 1e-5) << "rounding hides the order";
}

TEST(Sampler, StepsGoFromNoiseAloneToTheSample) {
  const auto steps = sampler_steps(4);
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_EQ(steps.front().at.level, 1.0);
  EXPECT_EQ(steps[1].at.level, 0.75);
  EXPECT_EQ(steps[1].extrapolation, 0.0) << "the first x was found in noise alone";
  EXPECT_GT(steps[2].extrapolation, 0.0);
  EXPECT_EQ(steps.back().keep, 0.0);
  EXPECT_EQ(steps.back().towards, 1.0);
}

}  // namespace
}  // namespace troupe::model
