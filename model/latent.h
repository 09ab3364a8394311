#pragma once

// The generator's input: the conditions of the wanted showers, and noise.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace troupe::model {

// What showers are asked for: kEnergyCondition (E / 100 GeV), kAngleCondition (rad), or a column of
// the data by its name.
inline constexpr const char* kEnergyCondition = "energy";
inline constexpr const char* kAngleCondition = "angle";

// Most conditions of a latent.
inline constexpr std::size_t kMostConditions = 16;

// kPrepend: latent = [conditions in order, noise]. kMultiply: latent = the one condition x noise.
enum class LatentMode : std::uint8_t { kPrepend, kMultiply };

struct LatentDescription {
  std::int64_t size = 0;  // the generator's input features, conditions included
  std::vector<std::string> conditions{kEnergyCondition};
  LatentMode mode = LatentMode::kPrepend;
};

// Chooses the numbers of a condition: those of `energy`, `angle`, or column(condition).
template <class T, class Column>
T numbers_of(const std::string& condition, const T& energy, const T& angle, const Column& column) {
  if (condition == kEnergyCondition) return energy;
  return condition == kAngleCondition ? angle : column(condition);
}

// True if the conditions include the angle.
bool uses_angle(const LatentDescription& latent);
// The conditions that are columns of the data, in order, each once.
std::vector<std::string> columns_of(const LatentDescription& latent);

// kTopology unless there are as many conditions as the mode takes, of kPrepend up to
// kMostConditions, and noise beside them.
runtime::Result<void> check_latent(const LatentDescription& latent);

// Fills latent (events x latent.size). `values` has an array of one value per event for each
// condition, in order. Noise element (event i, feature j) is random_normal(position, i x size + j).
// Computed in float whatever the type: every data type trains on the same latents.
void make_latent(const LatentDescription& latent, std::span<const float* const> values,
                 std::int64_t events, const runtime::RandomPosition& position, float* out);
void make_latent(const LatentDescription& latent, std::span<const float* const> values,
                 std::int64_t events, const runtime::RandomPosition& position, double* out);

}  // namespace troupe::model
