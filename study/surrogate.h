#pragma once

// The costs that trials of a study let one expect of places that nobody has looked at: a Gaussian
// process over their costs, which is quick to ask.

#include <vector>

#include "study/gaussian_process.h"
#include "study/method.h"

namespace troupe::study {

// Where a point stands, for the process: numbers by their shares, choices by their indices. A
// number that does not exist stands in the middle, so that it tells nothing; the choice that it
// hangs on tells that it is not there.
Coordinates place_of(const Space& space, const Point& point);

// Costs are in units of their own: their mean over the trials is 0, and their variance 1. The same
// arguments give the same answers, on any machine. Reads by any thread.
class Surrogate {
 public:
  // At least one trial has a cost. Costs far worse than the middle one count as less bad, and those
  // of trials that have failed as the worst.
  Surrogate(const Space& space, const std::vector<Observation>& ended);

  // Counts these as ended with what is expected of each (Ginsbourger, Le Riche and Carraro 2010,
  // "kriging believer").
  void believe(const std::vector<Point>& pending);

  Posterior at(const Point& point) const { return process_.at(place_of(space_, point)); }
  // The least that is expected of any trial.
  double best() const { return best_; }

 private:
  const Space space_;
  std::vector<bool> is_word_;
  std::vector<Coordinates> places_;
  std::vector<double> costs_;
  GaussianProcess process_;
  double best_;
};

}  // namespace troupe::study
