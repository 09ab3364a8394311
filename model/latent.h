#pragma once

// The generator's input: the conditions of the wanted showers, and noise.

#include <cstdint>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace troupe::model {

enum class Condition : std::uint8_t { kEnergy, kAngle };

// kPrepend: latent = [conditions in order, noise]. kMultiply: latent = the one condition x noise.
enum class LatentMode : std::uint8_t { kPrepend, kMultiply };

struct LatentDescription {
  std::int64_t size = 0;  // the generator's input features, conditions included
  std::vector<Condition> conditions{Condition::kEnergy};
  LatentMode mode = LatentMode::kPrepend;
};

// True if the conditions include the angle.
bool uses_angle(const LatentDescription& latent);

// kTopology unless there are as many conditions as the mode takes, of kPrepend any number, and
// noise beside them.
runtime::Result<void> check_latent(const LatentDescription& latent);

// Fills latent (events x latent.size). Noise element (event i, feature j) is
// random_normal(position, i x size + j). Computed in float whatever the type: every data type
// trains on the same latents. angle may be null unless uses_angle.
void make_latent(const LatentDescription& latent, const float* energy, const float* angle,
                 std::int64_t events, const runtime::RandomPosition& position, float* out);
void make_latent(const LatentDescription& latent, const float* energy, const float* angle,
                 std::int64_t events, const runtime::RandomPosition& position, double* out);

}  // namespace troupe::model
