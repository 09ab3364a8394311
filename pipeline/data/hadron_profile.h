#pragma once

// The energy that charged pions leave in the silicon of shower_detector.h, as far as published
// parametrisations go: nothing here is fitted to showers. docs/physics.md says what that leaves
// out.
//
// A pion crosses the detector as a track until it interacts, which takes it an interaction length
// on average. The share of its energy that neutral pions then take on is 1 - (E / 1 GeV)^(k - 1)
// with k = 0.82 on average (Gabriel, Groom, Job, Mokhov and Stevenson, NIM A 338 (1994) 336), and
// fluctuates. It develops as a shower of that energy of electrons; the rest as hadrons have it by
// Bock, Hansl-Kozanecka and Shah, NIM 186 (1981) 533, whose energy the detector sees less of.
//
// Energies in GeV, depth t in radiation lengths along the axis from where the pion interacts.

#include "pipeline/data/shower_profile.h"
#include "pipeline/data/shower_random.h"

namespace troupe::pipeline {

struct HadronProfile {
  double shape;    // c of Bock's x^(c - 1) exp(-d x), x in interaction lengths
  double rate;     // d
  double visible;  // energy that silicon sees of it, over all depths
};

// Interaction lengths of pions in tungsten in radiation lengths: 113.3 mm and 3.504 mm (PDG).
inline constexpr double kInteractionX0 = 32.3;
// Mean visible energy of a track in a piece of silicon of 0.5 mm, at 0.388 MeV / mm.
inline constexpr double kTrackGev = 1.94e-4;

// The share of the energy that goes on as electrons and photons, in (0, 1).
double draw_neutral_share(double energy_gev, ShowerRandom& random);

// For a pion of `energy_gev`; `hadronic_gev` of it go on as hadrons.
HadronProfile hadron_profile(double energy_gev, double hadronic_gev);

// Visible energy per X0 in the thin structure.
double visible_density(const HadronProfile& profile, double t);

// As wide as is usual for hadrons: half of the energy within 0.2 interaction lengths.
RadialProfile hadron_radial_profile(double spread_mm);

}  // namespace troupe::pipeline
