#include "pipeline/data/preprocessing.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numbers>

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

constexpr std::size_t kLanes = 16;

bool good_cell(float cell) { return cell >= 0.0f && cell <= std::numeric_limits<float>::max(); }
// Not subnormal either, as losses divide by energies.
bool is_positive(float value) {
  return value >= std::numeric_limits<float>::min() && value <= std::numeric_limits<float>::max();
}
bool good_energy(double gev) { return is_positive(static_cast<float>(gev / 100.0)); }
bool good_angle(double rad) {
  const auto angle = static_cast<float>(rad);
  return is_positive(angle) && static_cast<double>(angle) < std::numbers::pi;
}

// "(3, 4, 5)" of the value with this number, with the channel behind where there are several.
std::string place_in(const ImageShape& shape, std::size_t value) {
  const std::size_t cell = value / shape.channels;
  std::string place = fmt::format("({}, {}, {}", cell / shape.space[2] / shape.space[1],
                                  cell / shape.space[2] % shape.space[1], cell % shape.space[2]);
  if (shape.channels > 1) place += fmt::format(", {}", value % shape.channels);
  return place + ")";
}

float kept(float cell, float threshold) { return cell < threshold ? 0.0f : cell; }

}  // namespace

EventVerdict judge_event(const StoredEvent& event, const Preprocessing& preprocessing) {
  if (!good_energy(event.energy_gev) || !good_angle(event.angle_rad)) return {};
  const float threshold = preprocessing.threshold;
  const float scale = preprocessing.scale;
  std::array<double, kLanes> stored{};
  std::array<double, kLanes> scaled{};
  bool good = true;
  const auto add = [&](float cell, std::size_t lane) {
    const float value = kept(cell, threshold);
    good &= good_cell(cell);
    stored[lane] += static_cast<double>(value);
    scaled[lane] += static_cast<double>(value * scale);
  };
  const std::size_t whole = event.cells.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) add(event.cells[i + lane], lane);
  }
  for (std::size_t i = whole; i < event.cells.size(); ++i) add(event.cells[i], i - whole);
  if (!good) return {};
  double stored_sum = 0;
  double scaled_sum = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    stored_sum += stored[lane];
    scaled_sum += scaled[lane];
  }
  // No cell times scale is beyond a sum of them that is a float, but its power may be.
  if (!(scaled_sum <= static_cast<double>(std::numeric_limits<float>::max()))) return {};
  if (preprocessing.power > 1.0 &&
      !std::all_of(event.cells.begin(), event.cells.end(),
                   [&](float cell) { return good_cell(preprocess_cell(cell, preprocessing)); })) {
    return {};
  }
  const bool above =
      preprocessing.min_ecal < 0 || stored_sum > static_cast<double>(preprocessing.min_ecal);
  return {above ? EventState::kAccepted : EventState::kCut, static_cast<float>(scaled_sum)};
}

void preprocess_cells(std::span<const float> stored, const Preprocessing& preprocessing,
                      std::span<float> out) {
  const float lowest = lowest_kept(preprocessing);
  const float scale = preprocessing.scale;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    out[i] = (stored[i] < lowest ? 0.0F : stored[i]) * scale;
  }
  if (preprocessing.power == 1.0) return;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (out[i] != 0.0F) out[i] = preprocess_cell(stored[i], preprocessing);
  }
}

BadEvent describe_bad_event(const StoredEvent& event, const Preprocessing& preprocessing,
                            const ImageShape& shape) {
  if (!good_energy(event.energy_gev)) {
    return {EventPart::kEnergy,
            fmt::format("energy {} GeV; expected above 0 and within the range of 32-bit floats",
                        event.energy_gev)};
  }
  if (!good_angle(event.angle_rad)) {
    return {EventPart::kAngle,
            fmt::format("angle {}; expected radians between 0 and pi", event.angle_rad)};
  }
  for (std::size_t i = 0; i < event.cells.size(); ++i) {
    if (good_cell(event.cells[i])) continue;
    return {EventPart::kImage, fmt::format("cell {} is {}; expected finite cells of 0 or more",
                                           place_in(shape, i), event.cells[i])};
  }
  // An event of a good energy, a good angle and good cells can be bad only because a power of a
  // cell, or the sum of its cells, is too large.
  CHECK(judge_event(event, preprocessing).state == EventState::kBad, "a good event");
  return {EventPart::kImage,
          fmt::format("cells of up to {} are too large; expected 32-bit floats to hold each and "
                      "their sum after scale {} and power {}",
                      *std::max_element(event.cells.begin(), event.cells.end()),
                      preprocessing.scale, preprocessing.power)};
}

}  // namespace troupe::pipeline
