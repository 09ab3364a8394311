#pragma once

// Turns a stored image into what a model sees, and judges whether an event may be used at all.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "pipeline/data/dataset_options.h"
#include "runtime/base/math.h"

namespace troupe::pipeline {

enum class EventState : std::uint8_t {
  kAccepted,
  kCut,  // sum of cells not above min_ecal
  kBad,  // describe_bad_event() says why
};

// One stored event.
struct StoredEvent {
  std::span<const float> cells;  // [X][Y][Z][channels], stored units
  double energy_gev = 0;
  double angle_rad = 0;
};

struct EventVerdict {
  EventState state = EventState::kBad;
  float ecal = 0;  // sum of cells after threshold and scale, before the power; 0 for bad events
};

// An event is judged by the floats that training sees: the energy / 100, the angle, every cell
// after the preprocessing and ecal. The sum runs over 16 lanes in a fixed order, in double: the
// same bits everywhere.
EventVerdict judge_event(const StoredEvent& event, const Preprocessing& preprocessing);

enum class EventPart : std::uint8_t { kImage, kEnergy, kAngle };

struct BadEvent {
  EventPart part;
  std::string text;  // "cell (3, 4, 5) is nan; expected finite cells of 0 or more"
};

// The fault of a bad event and what was expected. CHECKs that it has one.
BadEvent describe_bad_event(const StoredEvent& event, const Preprocessing& preprocessing,
                            const ImageShape& shape);

// The value that a model sees for a stored cell that is finite and not negative: 0 under the
// threshold, else (cell x scale)^power.
inline float preprocess_cell(float cell, const Preprocessing& preprocessing) {
  const float value = (cell < preprocessing.threshold ? 0.0f : cell) * preprocessing.scale;
  if (preprocessing.power == 1.0 || value == 0.0f) return value;
  return static_cast<float>(runtime::math::pow(static_cast<double>(value), preprocessing.power));
}

// The least cell that does not become 0 for being small.
inline float lowest_kept(const Preprocessing& preprocessing) {
  return std::max(preprocessing.threshold, std::numeric_limits<float>::denorm_min());
}

// The same for all cells of an image. Those that are 0, of either sign, become 0.
void preprocess_cells(std::span<const float> stored, const Preprocessing& preprocessing,
                      std::span<float> out);

}  // namespace troupe::pipeline
