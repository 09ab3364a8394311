#pragma once

// The one table of random streams (RandomPosition::stream), but for those of the shower generator,
// which have a slot of their own (pipeline/data/shower_random.h). Part of the numerics: changing a
// number changes every trained bit, so kRandomVersion must grow with it.

#include <cstdint>

namespace troupe::model {

inline constexpr std::uint32_t kLatentStream = 1;     // noise of the generator's input, per element
inline constexpr std::uint32_t kFlipStream = 2;       // label flips, per event
inline constexpr std::uint32_t kConditionStream = 3;  // of fakes drawn uniformly, per event
inline constexpr std::uint32_t kValidationStream = 4;  // noise of validation and of `generate`

inline constexpr std::uint32_t kSpectrumStream = 5;   // energy and angle of `generate`, per event
inline constexpr std::uint32_t kExampleStream = 6;    // order of examples (model/supervised.h)
inline constexpr std::uint32_t kHalvesStream = 7;     // of samples, for classifiers of showers
inline constexpr std::uint32_t kMixStream = 8;        // of a gradient penalty's points, per event
inline constexpr std::uint32_t kLevelStream = 9;      // of a diffusion task's noise, per event
inline constexpr std::uint32_t kNoiseStream = 10;     // that noise, per value of the images
inline constexpr std::uint32_t kRoundingStream = 11;  // of a worker's changes, per element

// Dropout of layer i of network n (0 generator, 1 discriminator).
constexpr std::uint32_t dropout_stream(int network_number, int layer) {
  return 0x1000u + 0x1000u * static_cast<std::uint32_t>(network_number) +
         static_cast<std::uint32_t>(layer);
}

// Initial values of weight tensor i of network n; the slot of the position counts redraws.
constexpr std::uint32_t initialiser_stream(int network_number, int tensor) {
  return 0x10000u + 0x1000u * static_cast<std::uint32_t>(network_number) +
         static_cast<std::uint32_t>(tensor);
}

}  // namespace troupe::model
