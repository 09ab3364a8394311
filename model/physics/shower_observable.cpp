#include "model/physics/shower_observable.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "runtime/base/error.h"

namespace troupe::model {
namespace {

// Keeps every figure and its square within reach of a double's exact integers.
constexpr double kSmallestEnergyGev = 0.1;
constexpr double kLargestEnergyGev = 1e6;

template <std::size_t axis>
double centre(const SampledShower& shower) {
  return shower.found.moments[axis][0];
}

template <std::size_t axis>
double width(const SampledShower& shower) {
  return std::sqrt(shower.found.moments[axis][1]);
}

template <std::size_t part>
double depth_fraction(const SampledShower& shower) {
  return shower.found.depth_fractions[part];
}

double response(const SampledShower& shower) { return shower.found.ecal_gev / shower.energy_gev; }
double ecal(const SampledShower& shower) { return shower.found.ecal_gev; }
double hits(const SampledShower& shower) { return static_cast<double>(shower.found.hits); }
double hottest(const SampledShower& shower) {
  return shower.found.largest_gev / shower.found.ecal_gev;
}
double angle(const SampledShower& shower) { return shower.found.angle_rad; }

// The first layer of equals.
double maximum(const SampledShower& shower) {
  const auto& profile = shower.found.profile[2];
  return static_cast<double>(std::max_element(profile.begin(), profile.end()) - profile.begin());
}

constexpr std::array<ShowerObservable, 15> kObservables{{
    {"response", "energy in the cells / energy of the primary", "", response, false, false},
    {"ecal", "energy in the cells", "GeV", ecal, false, false},
    {"hits", "cells above the threshold", "", hits, false, false},
    {"hottest", "share of the hottest cell", "", hottest, true, false},
    {"maximum", "layer of the shower's maximum", "layers", maximum, true, false},
    {"depth", "mean layer", "layers", centre<2>, true, false},
    {"length", "spread over layers", "layers", width<2>, true, false},
    {"front", "share of the first third of the layers", "", depth_fraction<0>, true, false},
    {"middle", "share of the second third of the layers", "", depth_fraction<1>, true, false},
    {"back", "share of the last third of the layers", "", depth_fraction<2>, true, false},
    {"centre_x", "mean cell along x", "cells", centre<0>, true, false},
    {"centre_y", "mean cell along y", "cells", centre<1>, true, false},
    {"width_x", "spread along x", "cells", width<0>, true, false},
    {"width_y", "spread along y", "cells", width<1>, true, false},
    {"angle", "angle of incidence as measured", "rad", angle, true, true},
}};

}  // namespace

bool SampledShower::usable() const {
  return found.valid && energy_gev >= kSmallestEnergyGev && energy_gev <= kLargestEnergyGev;
}

std::span<const ShowerObservable> shower_observables() { return kObservables; }

const ShowerObservable& shower_observable(const char* name) {
  const auto found = std::find_if(
      kObservables.begin(), kObservables.end(),
      [&](const ShowerObservable& each) { return std::string_view(each.name) == name; });
  CHECK(found != kObservables.end(), "no such observable");
  return *found;
}

}  // namespace troupe::model
