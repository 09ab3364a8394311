#include "model/diffusion.h"

#include <algorithm>
#include <array>
#include <numbers>

#include "model/latent.h"
#include "runtime/base/error.h"
#include "runtime/base/math.h"

namespace troupe::model {
namespace {

double angle_at(double level) { return std::numbers::pi / 2 * level * level; }

// Half the logarithm of the ratio of signal to noise.
double log_ratio(const NoiseLevel& at) { return runtime::math::log(at.signal / at.noise); }

}  // namespace

NoiseLevel noise_level(double level) {
  // The ends are exact: nothing but signal, nothing but noise.
  if (level <= 0.0) return {0.0, 1.0, 0.0};
  if (level >= 1.0) return {1.0, 0.0, 1.0};
  const double angle = angle_at(level);
  return {level, runtime::math::cos(angle), runtime::math::sin(angle)};
}

Shape denoised_shape(const Shape& input, std::size_t conditions) {
  Shape image = input;
  image.channels =
      std::max<std::int64_t>(0, input.channels - 1 - static_cast<std::int64_t>(conditions));
  return image;
}

template <class T>
void write_denoiser_input(std::span<const T> image, std::int64_t channels, double level,
                          std::span<const float> conditions, T* input) {
  const auto cells = std::ssize(image) / channels;
  for (std::int64_t cell = 0; cell < cells; ++cell) {
    input = std::copy_n(image.data() + cell * channels, channels, input);
    *input++ = static_cast<T>(static_cast<float>(level));
    for (const float condition : conditions) *input++ = static_cast<T>(condition);
  }
}

template <class T>
void add_noise(const CleanEvents& clean, const runtime::RandomPosition& levels,
               const runtime::RandomPosition& noise, T* input, T* velocity) {
  const std::int64_t all = clean.events * clean.values;
  CHECK(all <= std::int64_t{UINT32_MAX}, "random numbers count in 32 bits");
  const std::int64_t cells = clean.values / clean.channels;
  const std::int64_t added = 1 + std::ssize(clean.conditions);
  std::array<float, kMostConditions> of_event{};
  CHECK(clean.conditions.size() <= of_event.size(), "there is room for the conditions");
  const auto conditions = std::span(of_event).first(clean.conditions.size());
  // The noise stands where the velocities come to.
  runtime::fill_normal(noise, velocity, static_cast<std::uint32_t>(all));
  for (std::int64_t event = 0; event < clean.events; ++event) {
    const NoiseLevel at =
        noise_level(runtime::random_uniform(levels, static_cast<std::uint32_t>(event)));
    for (std::size_t k = 0; k < conditions.size(); ++k) {
      conditions[k] = clean.conditions[k][event];
    }
    const float* image = clean.images + event * clean.values;
    T* own = velocity + event * clean.values;
    T* noisy = input + event * (clean.values + cells * added);
    // Noisy values stand together at the end of the event's input until they are spread over it,
    // from its front: no value is written over before it is read.
    T* const gathered = noisy + cells * added;
    for (std::int64_t i = 0; i < clean.values; ++i) {
      const auto x = static_cast<double>(image[i]);
      const auto e = static_cast<double>(static_cast<float>(own[i]));
      gathered[i] = static_cast<T>(at.signal * x + at.noise * e);
      own[i] = static_cast<T>(at.signal * e - at.noise * x);
    }
    write_denoiser_input<T>({gathered, static_cast<std::size_t>(clean.values)}, clean.channels,
                            at.level, conditions, noisy);
  }
}

template void write_denoiser_input(std::span<const float>, std::int64_t, double,
                                   std::span<const float>, float*);
template void write_denoiser_input(std::span<const double>, std::int64_t, double,
                                   std::span<const float>, double*);
template void add_noise(const CleanEvents&, const runtime::RandomPosition&,
                        const runtime::RandomPosition&, float*, float*);
template void add_noise(const CleanEvents&, const runtime::RandomPosition&,
                        const runtime::RandomPosition&, double*, double*);

std::vector<SamplerStep> sampler_steps(std::uint32_t steps) {
  CHECK(steps >= 1, "a sample takes a step");
  const auto level = [&](std::uint32_t step) {
    return 1.0 - static_cast<double>(step) / static_cast<double>(steps);
  };
  std::vector<SamplerStep> all;
  for (std::uint32_t i = 0; i < steps; ++i) {
    SamplerStep& step = all.emplace_back();
    step.at = noise_level(level(i));
    const NoiseLevel next = noise_level(level(i + 1));
    step.keep = next.noise / step.at.noise;
    step.towards = next.signal - step.at.signal * step.keep;
    // The ratio is 0 at the first level, and has no end at the last.
    if (i < 2 || i + 1 == steps) continue;
    const double length = log_ratio(next) - log_ratio(step.at);
    step.extrapolation = length / (2.0 * (log_ratio(step.at) - log_ratio(all[i - 1].at)));
  }
  return all;
}

void take_step(const SamplerStep& step, std::span<const float> velocity, std::span<float> z,
               std::span<float> before) {
  CHECK(velocity.size() == z.size() && before.size() == z.size(), "of the same samples");
  const auto signal = static_cast<float>(step.at.signal), noise = static_cast<float>(step.at.noise);
  const auto keep = static_cast<float>(step.keep), towards = static_cast<float>(step.towards);
  const auto extrapolation = static_cast<float>(step.extrapolation);
  for (std::size_t i = 0; i < z.size(); ++i) {
    const float x = signal * z[i] - noise * velocity[i];
    // Nothing has been found before the first step.
    const float further = extrapolation == 0.0F ? x : x + extrapolation * (x - before[i]);
    z[i] = keep * z[i] + towards * further;
    before[i] = x;
  }
}

}  // namespace troupe::model
