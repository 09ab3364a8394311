#include "pipeline/data/shower_profile.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/math.h"

namespace troupe::pipeline {
namespace math = runtime::math;
namespace {

double gamma_density(double alpha, double beta, double log_norm, double t) {
  return beta * math::exp((alpha - 1.0) * math::log(beta * t) - beta * t - log_norm);
}

}  // namespace

LongitudinalProfile draw_profile(const ShowerMedium& medium, double energy_gev,
                                 ShowerRandom& random) {
  const double z = medium.atomic_number;
  const double ln_y = math::log(energy_gev / medium.critical_energy_gev);
  const double mean_ln_t = math::log(ln_y - 0.812);
  const double mean_ln_alpha = math::log(0.81 + (0.458 + 2.26 / z) * ln_y);
  const double sigma_t = 1.0 / (-1.4 + 1.26 * ln_y);
  const double sigma_alpha = 1.0 / (-0.58 + 0.86 * ln_y);
  const double rho = 0.705 - 0.023 * ln_y;
  // Two normal numbers of correlation rho are the sum and the difference of two independent ones
  // with these weights.
  const double together = std::sqrt((1.0 + rho) / 2.0) * random.normal();
  const double apart = std::sqrt((1.0 - rho) / 2.0) * random.normal();
  const double maximum = std::max(1.0, math::exp(mean_ln_t + sigma_t * (together + apart)));
  LongitudinalProfile profile{};
  profile.energy_gev = energy_gev;
  profile.alpha = std::max(1.1, math::exp(mean_ln_alpha + sigma_alpha * (together - apart)));
  profile.beta = (profile.alpha - 1.0) / maximum;
  profile.mean_depth = profile.alpha / profile.beta;
  const double mean_alpha = math::exp(mean_ln_alpha);
  profile.tau_scale = mean_alpha / (profile.mean_depth * (mean_alpha - 1.0));
  profile.log_norm = log_gamma(profile.alpha);
  profile.spot_alpha = std::max(1.1, profile.alpha * (0.844 + 0.0026 * z));
  profile.spot_beta = (profile.spot_alpha - 1.0) / (maximum * (0.813 + 0.0019 * z));
  profile.spot_log_norm = log_gamma(profile.spot_alpha);
  profile.spots = 10.3 / medium.resolution * math::pow(energy_gev, 0.959);
  return profile;
}

double energy_density(const LongitudinalProfile& profile, double t) {
  return gamma_density(profile.alpha, profile.beta, profile.log_norm, t);
}

double spot_density(const LongitudinalProfile& profile, double t) {
  return gamma_density(profile.spot_alpha, profile.spot_beta, profile.spot_log_norm, t);
}

RadialProfile radial_profile(const ShowerMedium& medium, double energy_gev, double tau) {
  const double z = medium.atomic_number;
  const double ln_e = math::log(energy_gev);
  RadialProfile radial{};
  radial.core = 0.0251 + 0.00319 * ln_e + (0.1162 - 0.000381 * z) * tau;
  radial.tail = (0.659 - 0.00309 * z) * (math::exp(-2.59 * (tau - 0.645)) +
                                         math::exp((0.3585 + 0.0421 * ln_e) * (tau - 0.645)));
  const double u = (0.401 + 0.00187 * z - tau) / (1.313 - 0.0686 * ln_e);
  radial.core_fraction = std::clamp((2.632 - 0.00094 * z) * math::exp(u - math::exp(u)), 0.0, 1.0);
  return radial;
}

}  // namespace troupe::pipeline
