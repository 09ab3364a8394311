#pragma once

// Diffusion: a network learns to take noise out of showers, and makes showers out of noise alone.
//
// At level t, from 0 to 1, an image x becomes z = cos(a) x + sin(a) e with the angle a = (pi / 2)
// t^2 and standard normal noise e, drawn for each cell: the variance-preserving process with the
// cosine's angles (Nichol and Dhariwal, arXiv:2102.09672). The square puts half of all levels below
// an angle of 22.5 degrees, as faint cells are decided where there is little noise.
//
// The network reads z, t and the conditions, and tells the velocity v = cos(a) e - sin(a) x
// (Salimans and Ho, arXiv:2202.00512, section 4), which is of the same size at every level. Then
// the image without noise is x = cos(a) z - sin(a) v. Its loss is a mean over cells and over
// events, whose levels are uniform in [0, 1].
//
// Samples follow from the noise they begin with: levels fall from 1 to 0 in equal steps, and each
// takes the network once (SamplerStep). They are those of DPM-Solver++(2M) (Lu et al.,
// arXiv:2211.01095, algorithm 2), of second order; the first two and the last are of first order,
// which is DDIM (Song et al., arXiv:2010.02502, with eta = 0).

#include <cstdint>
#include <span>
#include <vector>

#include "model/tensor.h"
#include "runtime/base/random.h"

namespace troupe::model {

struct DiffusionOptions {
  std::uint32_t steps = 16;  // of the sampler, from 1; training does not depend on it
};

// cos(a) and sin(a) of a level in [0, 1].
struct NoiseLevel {
  double level = 0.0, signal = 1.0, noise = 0.0;
};
NoiseLevel noise_level(double level);

// The network's input has channels behind those of the image, with the same number in each cell:
// the level, then the conditions in order. The shape of the image; without channels if the input
// has none for it.
Shape denoised_shape(const Shape& input, std::size_t conditions);

// Writes an event's input. `image`: (cells, channels).
template <class T>
void write_denoiser_input(std::span<const T> image, std::int64_t channels, double level,
                          std::span<const float> conditions, T* input);

// The events of a micro-batch without noise. `images`: (events, values), where values are of one
// image; conditions: each an array of one number per event.
struct CleanEvents {
  std::int64_t events = 0, values = 0, channels = 1;
  const float* images = nullptr;
  std::span<const float* const> conditions;
};
// Makes the examples that a network learns from. Event i has the level random_uniform(levels, i),
// and its value j the noise random_normal(noise, i x values + j), rounded to float in either data
// type. `input` is the network's; `velocity` receives (events, values).
template <class T>
void add_noise(const CleanEvents& clean, const runtime::RandomPosition& levels,
               const runtime::RandomPosition& noise, T* input, T* velocity);

// One step of a sample. From z and the velocity found there, with x = signal z - noise v and x' the
// x of the step before, z becomes keep z + towards (x + extrapolation (x - x')).
struct SamplerStep {
  NoiseLevel at;
  double keep = 0.0, towards = 0.0, extrapolation = 0.0;
};
// `steps` of them, at least 1. After the last one z is the sample.
std::vector<SamplerStep> sampler_steps(std::uint32_t steps);
// Changes z, and leaves x in `before`, where x' is. Any number of samples; sizes agree.
void take_step(const SamplerStep& step, std::span<const float> velocity, std::span<float> z,
               std::span<float> before);

}  // namespace troupe::model
