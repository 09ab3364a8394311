#pragma once

// The places where an electromagnetic shower leaves its energy, by the parametrisation of
// Grindhammer and Peters (hep-ex/0001020), its set for homogeneous media with the mean Z of the
// mixture. The paper's corrections for sampling calorimeters would move the maximum forward and
// narrow the core; without them the Geant4 response of the CLIC calorimeter and the radial
// containment (0.88 within one Moliere radius, 0.96 within two) are met. Energies in GeV, depth t
// in radiation lengths, radius in Moliere radii.

#include "pipeline/data/shower_random.h"

namespace troupe::pipeline {

// The mixture the shower develops in, as one medium.
struct ShowerMedium {
  double atomic_number = 69.8;           // mean Z
  double critical_energy_gev = 8.72e-3;  // Ec
  double resolution = 0.17;              // c: sigma / E = c / sqrt(E / GeV)
};

// One event's longitudinal profile, a gamma distribution with this shape and rate, and that of its
// spots.
struct LongitudinalProfile {
  double energy_gev;
  double alpha;
  double beta;
  double log_norm;    // log Gamma(alpha)
  double mean_depth;  // <t> = alpha / beta
  double tau_scale;   // tau = t tau_scale = (t / <t>) e^<ln alpha> / (e^<ln alpha> - 1)
  double spot_alpha;
  double spot_beta;
  double spot_log_norm;
  double spots;  // mean number in an infinitely deep calorimeter
};

// The homogeneous means, widths and correlation of ln T and ln alpha, drawn from `random`;
// alpha >= 1.1 and T >= 1.
LongitudinalProfile draw_profile(const ShowerMedium& medium, double energy_gev,
                                 ShowerRandom& random);

// Fraction of the energy (of the spots) per radiation length at depth t.
double energy_density(const LongitudinalProfile& profile, double t);
double spot_density(const LongitudinalProfile& profile, double t);

// f(r) = p 2 r Rc^2 / (r^2 + Rc^2)^2 + (1 - p) 2 r Rt^2 / (r^2 + Rt^2)^2.
struct RadialProfile {
  double core;           // Rc
  double tail;           // Rt
  double core_fraction;  // p in [0, 1]
};

// At tau = depth over the depth of the mean shower's centre of gravity.
RadialProfile radial_profile(const ShowerMedium& medium, double energy_gev, double tau);

}  // namespace troupe::pipeline
