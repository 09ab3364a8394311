#pragma once

// How far the numbers that a generator makes with its showers, columns of the data, are from those
// of the data.

#include <string>
#include <vector>

#include "model/physics/figure.h"
#include "model/physics/figures.h"
#include "model/physics/shower_sample.h"
#include "runtime/base/thread_team.h"

namespace troupe::model {

// A number for each shower of a sample, in the units of the data.
struct SampledColumn {
  std::string name;
  std::vector<double> numbers;
};

// A sample and its columns.
struct SampledColumns {
  const ShowerSample& sample;
  const std::vector<SampledColumn>& columns;
};

// For each column NAME the distances of its distribution over all showers, as those of an
// observable: distance_rules() of model/physics/paired_values.h, by the names
// column.NAME.kolmogorov and so on. Behind them
//   column_correlations  root mean square of r_d - r_g over the usable showers, with Pearson's r of
//                        each pair of a column and another one, the response (ecal / energy) or the
//                        energy
// Uncertainties and floors are found as those of all figures (figures.h), with
// FigureOptions::replicas, seed and going_on. Both sides have the same columns, and the generated
// showers the energies of the data (CHECKed). Without value: a column of which a number is not
// finite, and correlations where one is. A pure function; the team shares the draws out.
std::vector<Figure> compute_column_figures(const SampledColumns& data,
                                           const SampledColumns& generated,
                                           const FigureOptions& options, runtime::ThreadTeam& team);

}  // namespace troupe::model
