#pragma once

// How much each field of a space matters to the figure.

#include <vector>

#include "study/method.h"

namespace troupe::study {

// Trials with a figure from which on importance says something.
inline constexpr std::size_t kLeastForImportance = 5;

// For each dimension: the share of the variance of the cost over the whole space that it explains
// by itself, by what a Gaussian process expects of each place (a first-order index: Sobol,
// Mathematics and Computers in Simulation 55, 2001; of trials: Hutter, Hoos and Leyton-Brown, ICML
// 2014). The rest up to 1 is of several fields together. Empty: too few trials have a cost, or
// all are expected to be the same.
std::vector<double> importance_of(const Space& space, const std::vector<Observation>& ended);

}  // namespace troupe::study
