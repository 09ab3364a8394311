#pragma once

// How far a generated sample is from the data it should look like. Every figure is 0 for identical
// samples, and lower is better.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/physics/shower_statistics.h"

namespace troupe::model {

// |generated - data| / |data|. For data of 0: 0 if the other is 0 too, else 1.
double relative_error(double data, double generated);

// 3DGAN's figure of merit, as keras/misc/TestingObjective.py of svalleco/3Dgan@Anglegan computes
// it. With d = data, g = generated, means over the events of an energy bin, mean_E over the bins:
//   P  = mean_E of the mean over axes a and orders k = 1, 2 of relative_error(<M_ak>_d, <M_ak>_g)
//   S  = mean_E of the mean over axes of the mean over i of |s_a[i]_d - s_a[i]_g| / s_a[i]_d
//   SF = mean_E of relative_error(<ecal / primary energy>_d, <ecal / primary energy>_g)
//   A  = mean_E of mean over events |theta_d - theta_g| / theta_d
// In S, profile cells with s_a[i]_d under 1e-6 of the sum of s_a are left out. An energy bin is
// left out when the data have no energy in it or the generated sample no event.
struct FigureOfMerit {
  double total = 0.0;  // P + S + SF, + A where there is one
  double moments = 0.0;
  double profiles = 0.0;
  double sampling_fraction = 0.0;
  // Nothing where no generated event of the bins came with a reference angle; then a mean over the
  // bins that have any.
  std::optional<double> angle;
  std::int64_t energy_bins = 0;  // averaged over
  std::int64_t energy_bins_skipped = 0;
  std::int64_t profile_cells_skipped = 0;  // in all the bins and axes together
};

// A way in which a sample is nothing like the data, however small its figure of merit: noise, cells
// that are filled at random and generators that have learnt nothing are. The bounds are wide: a
// generator that makes showers at all, if bad ones, keeps them.
enum class Unlikeness : std::uint8_t {
  kResponse,      // its mean response is off by more than half of the data's
  kLongitudinal,  // longitudinal_displacement is above a quarter
  kTransverse,    // transverse_displacement is above a quarter
  kEnergy,        // ecal follows the primary energy less than half as well: energy_correlation()
};

// Besides the figure of merit, figures over all events. Longitudinal is z; transverse the mean of x
// and y.
struct Comparison {
  // Nothing where every energy bin was left out.
  std::optional<FigureOfMerit> merit;

  double sampling_fraction_error = 0.0;        // relative_error of the means, like hits_error
  double sampling_fraction_width_error = 0.0;  // relative_error of the standard deviations
  double hits_error = 0.0;
  double moments_error = 0.0;  // mean over axes and orders 1 and 2

  // sum_i |s_g[i] - s_d[i]| / sum_i s_d[i]: the share of the energy that is missing, too much or in
  // the wrong place. These are the table's: unlike those below, they do not hang on the cells at
  // the edge, where both samples have next to nothing.
  double longitudinal_error = 0.0;
  double transverse_error = 0.0;
  // mean_i |s_g[i] - s_d[i]| / s_d[i], cells as in S.
  double longitudinal_cell_error = 0.0;
  double transverse_cell_error = 0.0;

  // The share of the energy at wrong places when both profiles are scaled to the same energy: sum_i
  // |s_g[i] / S_g - s_d[i] / S_d| / 2, from 0 to 1; 1 where one of them has none.
  double longitudinal_displacement = 0.0;
  double transverse_displacement = 0.0;
  // In the order of the enumeration; empty: the sample resembles the data.
  std::vector<Unlikeness> unlike;

  // Mean |r_d - r_g| over the pairs of the reduced correlations that are defined in both samples
  // (get_correlation_small of 3DGAN); nothing where none is.
  std::optional<double> correlation_difference;
  // Root mean square of r_d - r_g over the pairs of layers' energies, likewise.
  std::optional<double> layer_correlation_difference;
  // Separation power of the two histograms of ecal.
  double ecal_separation = 0.0;
};

// The numbers of a Comparison that are always there, with the names that JSON has for them.
struct ComparisonNumber {
  const char* name;
  double Comparison::*value;
};
std::span<const ComparisonNumber> comparison_numbers();
// Likewise those that may be absent.
struct OptionalNumber {
  const char* name;
  std::optional<double> Comparison::*value;
};
std::span<const OptionalNumber> optional_numbers();

// Number by number, over those that have it; a term of the merit likewise. Nothing is `unlike`.
Comparison mean_of(std::span<const Comparison> comparisons);

// sum_i |g_i - d_i| / sum_i d_i; where the data have none, 0 or, with energy in the other, 1.
double profile_error(const std::vector<double>& data, const std::vector<double>& generated);

// Both with the same options, CHECKed. For figures free of differences in the conditions, the
// generated events take the energies (and angles) of the data events.
Comparison compare(const ShowerStatistics& data, const ShowerStatistics& generated);

}  // namespace troupe::model
