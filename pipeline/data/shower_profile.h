#pragma once

// The energy that an electromagnetic shower leaves in silicon, by depth and radius.
//
// The shapes are those of Grindhammer and Peters, "The parameterized simulation of electromagnetic
// showers in homogeneous and sampling calorimeters", hep-ex/0001020: a gamma distribution along the
// axis, whose maximum T and shape alpha vary from shower to shower with normal, correlated
// logarithms, around it a core and a tail, f(r) = 2 r R^2 / (r^2 + R^2)^2 each, whose radii and
// weights depend on tau, the depth over T.
//
// The constants are not theirs: they are fitted to 2,066 electrons of 10 to 100 GeV that Geant4
// 11.2.2 made in the detector of shower_detector.h, whose silicon lies behind the tungsten of its
// layer and sees the shower there. The fit takes means, standard deviations and correlations of the
// layers' energies in five bins of energy, and the mean cells of each layer in four. Three terms
// are added to the paper's: the ripple, a fluctuation with a shape of its own, without which the
// correlations of layers are wrong; a response that follows T and alpha; and the halo, a little
// energy in each piece of silicon however deep, which is most of what the first ones see.
//
// Energies in GeV, depth t in radiation lengths (X0) along the axis, radii in units of
// AbsorberMixture::spread_mm.

#include "pipeline/data/shower_random.h"

namespace troupe::pipeline {

// One event's longitudinal profile.
struct LongitudinalProfile {
  double alpha;         // shape of the gamma distribution, at least 1.1
  double maximum;       // T, at least 1
  double at_maximum;    // visible energy per X0 at depth T in the thin structure, the ripple aside
  double ripple;        // its amplitude
  double mean_maximum;  // of T over showers of this energy
  double halo;          // visible energy in each piece of silicon
};

// y = E / Ec with Ec = 8.72 MeV; means and standard deviations of ln T and ln alpha depend on ln y.
LongitudinalProfile draw_profile(double energy_gev, ShowerRandom& random);

// Visible energy per X0 that silicon at depth t has in the thin structure, without the halo:
// at_maximum (tau exp(1 - tau))^(alpha - 1) exp(ripple (cos(w (tau - 1) + p) - k)), tau = t / T.
double visible_density(const LongitudinalProfile& profile, double t);

// f(r) = p 2 r Rc^2 / (r^2 + Rc^2)^2 + (1 - p) 2 r Rt^2 / (r^2 + Rt^2)^2.
struct RadialProfile {
  double core;           // Rc
  double tail;           // Rt
  double core_fraction;  // p in [0, 1]
  double core_spot_gev;  // mean visible energy of a spot of the core, and of the tail
  double tail_spot_gev;
};

RadialProfile radial_profile(double energy_gev, double tau);

}  // namespace troupe::pipeline
