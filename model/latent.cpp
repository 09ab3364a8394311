#include "model/latent.h"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::model {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::RandomPosition;

template <class T>
void fill_latent(const LatentDescription& latent, std::span<const float* const> values,
                 std::int64_t events, const RandomPosition& position, T* out) {
  CHECK(values.size() == latent.conditions.size(), "every condition has values");
  CHECK(events * latent.size <= std::int64_t{UINT32_MAX}, "random numbers count in 32 bits");
  // Noise is drawn for all features, and conditions take the place of some, so a feature's noise
  // does not depend on the conditions. It is rounded to float in either data type.
  runtime::fill_normal(position, out, static_cast<std::uint32_t>(events * latent.size));
  for (std::int64_t i = 0; i < events; ++i) {
    T* features = out + i * latent.size;
    const bool multiply = latent.mode == LatentMode::kMultiply;
    const float factor = multiply ? values.front()[i] : 1.0F;
    for (std::int64_t j = 0; j < latent.size; ++j) {
      features[j] = static_cast<T>(static_cast<float>(features[j]) * factor);
    }
    if (multiply) continue;
    for (std::size_t j = 0; j < values.size(); ++j) features[j] = static_cast<T>(values[j][i]);
  }
}

}  // namespace

bool uses_angle(const LatentDescription& latent) {
  return std::ranges::find(latent.conditions, kAngleCondition) != latent.conditions.end();
}

std::vector<std::string> columns_of(const LatentDescription& latent) {
  std::vector<std::string> columns;
  for (const std::string& condition : latent.conditions) {
    if (condition == kEnergyCondition || condition == kAngleCondition) continue;
    if (std::ranges::find(columns, condition) == columns.end()) columns.push_back(condition);
  }
  return columns;
}

runtime::Result<void> check_latent(const LatentDescription& latent) {
  const std::size_t conditions = latent.conditions.size();
  if (latent.mode == LatentMode::kMultiply) {
    if (conditions == 1) return {};
    return Error{ErrorKind::kTopology,
                 fmt::format("a latent of mode multiply has one condition, not {}", conditions)};
  }
  if (conditions > kMostConditions) {
    return Error{ErrorKind::kTopology, fmt::format("a latent of {} conditions; it has room for {}",
                                                   conditions, kMostConditions)};
  }
  if (static_cast<std::int64_t>(conditions) < latent.size) return {};
  return Error{ErrorKind::kTopology,
               fmt::format("a latent of {} features leaves no noise beside {} conditions",
                           latent.size, conditions)};
}

void make_latent(const LatentDescription& latent, std::span<const float* const> values,
                 std::int64_t events, const RandomPosition& position, float* out) {
  fill_latent(latent, values, events, position, out);
}

void make_latent(const LatentDescription& latent, std::span<const float* const> values,
                 std::int64_t events, const RandomPosition& position, double* out) {
  fill_latent(latent, values, events, position, out);
}

}  // namespace troupe::model
