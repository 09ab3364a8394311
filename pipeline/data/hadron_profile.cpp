#include "pipeline/data/hadron_profile.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/math.h"

namespace troupe::pipeline {
namespace math = runtime::math;

double draw_neutral_share(double energy_gev, ShowerRandom& random) {
  constexpr double kLeast = 0.02;
  // The share has a beta distribution: its deviation is about 0.2 at a mean of one half.
  constexpr double kConcentration = 5.0;
  const double mean =
      std::clamp(1.0 - math::pow(std::max(energy_gev, 1.0), -0.18), kLeast, 1.0 - kLeast);
  const double neutral = random.gamma(kConcentration * mean);
  const double charged = random.gamma(kConcentration * (1.0 - mean));
  return std::clamp(neutral / (neutral + charged), kLeast, 1.0 - kLeast);
}

HadronProfile hadron_profile(double energy_gev, double hadronic_gev) {
  // The share of electrons' energy that silicon sees (shower_profile.cpp), and that of hadrons'
  // beside it.
  constexpr double kElectronResponse = 0.0232;
  constexpr double kBesideElectrons = 0.8;
  const double ln_e = math::log(energy_gev);
  return {0.6165 + 0.3183 * ln_e, 0.9099 - 0.0237 * ln_e,
          hadronic_gev * kElectronResponse * kBesideElectrons};
}

double visible_density(const HadronProfile& profile, double t) {
  const double x = t / kInteractionX0;
  const double log_density = profile.shape * math::log(profile.rate) +
                             (profile.shape - 1.0) * math::log(x) - profile.rate * x -
                             log_gamma(profile.shape);
  return profile.visible * math::exp(log_density) / kInteractionX0;
}

// f(r) = 2 r R^2 / (r^2 + R^2)^2 has half of its integral within R.
RadialProfile hadron_radial_profile(double spread_mm) {
  constexpr double kRadiusMm = 0.2 * 113.3;
  // A particle of the shower crosses the silicon as a track does.
  return {kRadiusMm / spread_mm, kRadiusMm / spread_mm, 1.0, kTrackGev, kTrackGev};
}

}  // namespace troupe::pipeline
