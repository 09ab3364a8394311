#include "model/latent.h"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::model {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::RandomPosition;

template <class T>
void fill_latent(const LatentDescription& latent, const float* energy, const float* angle,
                 std::int64_t events, const RandomPosition& position, T* out) {
  CHECK(angle != nullptr || !uses_angle(latent), "the model asks for an angle");
  CHECK(events * latent.size <= std::int64_t{UINT32_MAX}, "random numbers count in 32 bits");
  // Noise is drawn for all features, and conditions take the place of some, so a feature's noise
  // does not depend on the conditions. It is rounded to float in either data type.
  runtime::fill_normal(position, out, static_cast<std::uint32_t>(events * latent.size));
  for (std::int64_t i = 0; i < events; ++i) {
    T* features = out + i * latent.size;
    const auto value = [&](Condition condition) {
      return condition == Condition::kEnergy ? energy[i] : angle[i];
    };
    const bool multiply = latent.mode == LatentMode::kMultiply;
    const float factor = multiply ? value(latent.conditions.front()) : 1.0F;
    for (std::int64_t j = 0; j < latent.size; ++j) {
      features[j] = static_cast<T>(static_cast<float>(features[j]) * factor);
    }
    if (multiply) continue;
    for (std::size_t j = 0; j < latent.conditions.size(); ++j) {
      features[j] = static_cast<T>(value(latent.conditions[j]));
    }
  }
}

}  // namespace

bool uses_angle(const LatentDescription& latent) {
  return std::find(latent.conditions.begin(), latent.conditions.end(), Condition::kAngle) !=
         latent.conditions.end();
}

runtime::Result<void> check_latent(const LatentDescription& latent) {
  const auto conditions = static_cast<std::int64_t>(latent.conditions.size());
  if (latent.mode == LatentMode::kMultiply) {
    if (conditions == 1) return {};
    return Error{ErrorKind::kTopology,
                 fmt::format("a latent of mode multiply has one condition, not {}", conditions)};
  }
  if (conditions < latent.size) return {};
  return Error{ErrorKind::kTopology,
               fmt::format("a latent of {} features leaves no noise beside {} conditions",
                           latent.size, conditions)};
}

void make_latent(const LatentDescription& latent, const float* energy, const float* angle,
                 std::int64_t events, const RandomPosition& position, float* out) {
  fill_latent(latent, energy, angle, events, position, out);
}

void make_latent(const LatentDescription& latent, const float* energy, const float* angle,
                 std::int64_t events, const RandomPosition& position, double* out) {
  fill_latent(latent, energy, angle, events, position, out);
}

}  // namespace troupe::model
