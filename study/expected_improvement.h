#pragma once

// How much better than the best so far a place may be expected to be (Jones, Schonlau and Welch,
// Journal of Global Optimization 13, 1998).

#include "study/gaussian_process.h"

namespace troupe::study {

// Probability that a standard normal number is below x. Absolute error under 1e-14 (West, Better
// approximations to cumulative normal functions, Wilmott 2005, after Hart 1968).
double normal_probability(double x);

// (best - mean) P(z) + deviation p(z), z = (best - mean) / deviation. 0 where nothing is uncertain
// and nothing better.
double expected_improvement(const Posterior& posterior, double best);

// Its logarithm, which still tells places apart where the value itself is too small for a number.
// -infinity where it is 0.
double log_expected_improvement(const Posterior& posterior, double best);

}  // namespace troupe::study
