#pragma once

// The figures of one shower whose distributions are compared, as one list: what is drawn, measured
// and told of them is made from it.

#include <optional>
#include <span>

#include "model/physics/observables.h"

namespace troupe::model {

// A shower as a sample keeps it.
struct SampledShower {
  ShowerObservables found;
  double energy_gev = 0.0;            // of the primary
  std::optional<double> angle_error;  // |reference - measured| / reference, if there is a reference
  std::optional<double> angle_rad;    // of the primary, if it is known

  // Found valid, with an energy in [0.1, 1e6] GeV. Others are counted and otherwise left out.
  bool usable() const;
};

struct ShowerObservable {
  const char* name;   // of one word: "response"
  const char* title;  // for people
  const char* unit;   // "" for pure numbers
  double (*of)(const SampledShower& shower);
  // True where a shower without energy has none.
  bool of_filled;
  // True for what only samples with measured angles have.
  bool of_angle;

  // Whether a sample has it, by whether its angles were measured.
  bool is_known(bool with_angles) const { return with_angles || !of_angle; }
};

// In the order in which they are shown.
std::span<const ShowerObservable> shower_observables();
// CHECKs that there is one of that name.
const ShowerObservable& shower_observable(const char* name);

}  // namespace troupe::model
