#include "pipeline/data/shower_profile.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/math.h"

namespace troupe::pipeline {
namespace math = runtime::math;
namespace {

constexpr double kCriticalEnergyGev = 8.72e-3;
// The ripple's frequency and phase in tau, and what keeps it from changing the mean response.
constexpr double kRippleFrequency = 3.808;
constexpr double kRipplePhase = 0.6227;
constexpr double kRippleOffset = 0.1827;
constexpr double kRippleSize = 0.1319;

// ln of the density of the gamma distribution of shape alpha and rate (alpha - 1) / maximum at its
// maximum.
double log_peak(double alpha, double maximum) {
  const double k = alpha - 1.0;
  return math::log(k / maximum) + k * math::log(k) - k - log_gamma(alpha);
}

}  // namespace

LongitudinalProfile draw_profile(double energy_gev, ShowerRandom& random) {
  constexpr double kCorrelation = 0.378;
  const double ln_y = math::log(energy_gev / kCriticalEnergyGev);
  const double shift = random.normal();
  const double other = std::sqrt(1.0 - kCorrelation * kCorrelation) * random.normal();
  // How far ln T and ln alpha are from their means.
  const double of_t = shift / (1.885 + 0.7767 * ln_y);
  const double of_alpha = (kCorrelation * shift + other) / (5.237 + 0.1394 * ln_y);
  LongitudinalProfile profile{};
  // ln y is 4.7 at 1 GeV, the least energy that is asked for.
  profile.mean_maximum = 1.188 * ln_y - 2.569;
  profile.maximum = std::max(1.0, profile.mean_maximum * math::exp(of_t));
  profile.alpha = std::max(1.1, (0.6277 * ln_y - 0.1815) * math::exp(of_alpha));
  profile.ripple = kRippleSize * random.normal();
  const double response = 0.023165 * (1.0 + 0.01384 * (ln_y - 8.7));
  profile.at_maximum =
      energy_gev * response *
      math::exp(log_peak(profile.alpha, profile.maximum) + 0.06762 * of_t - 0.03861 * of_alpha);
  profile.halo = 0.0009322 * math::pow(energy_gev / 50.0, 0.4922);
  return profile;
}

double visible_density(const LongitudinalProfile& profile, double t) {
  const double tau = t / profile.maximum;
  const double shape = (profile.alpha - 1.0) * (math::log(tau) + 1.0 - tau);
  const double wave = math::cos(kRippleFrequency * (tau - 1.0) + kRipplePhase) - kRippleOffset;
  return profile.at_maximum * math::exp(shape + profile.ripple * wave);
}

RadialProfile radial_profile(double energy_gev, double tau) {
  constexpr double kNarrowest = 0.01;
  // Single cells far from the axis have an exponential spectrum of about this mean.
  constexpr double kSpotGev = 2.9e-4;
  const double ln_e = math::log(energy_gev);
  RadialProfile radial{};
  radial.core = std::max(kNarrowest, 0.0297 + 0.002497 * ln_e + (0.07419 + 0.002367 * tau) * tau);
  radial.tail = 0.4458 * (math::exp(-5.372 * (tau - 0.3327)) +
                          math::exp((0.2844 + 0.02547 * ln_e) * (tau - 0.3327)));
  const double u = (0.2563 - tau) / 1.1917;
  radial.core_fraction = std::clamp(2.0712 * math::exp(u - math::exp(u)), 0.0, 1.0);
  radial.core_spot_gev = kSpotGev;
  radial.tail_spot_gev = std::clamp(4.55e-4 - 0.9e-4 * tau, 2.75e-4, 3.65e-4);
  return radial;
}

}  // namespace troupe::pipeline
