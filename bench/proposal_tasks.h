#pragma once

// Functions that stand for the figure of a training, by which bench_proposals compares how settings
// are chosen. All are to be made small.

#include <functional>
#include <string>
#include <vector>

#include "study/space.h"

namespace troupe::bench {

struct ProposalTask {
  std::string name;
  study::Space space;
  std::function<double(const study::Point&)> cost;
  study::Point best;         // a point where it is least, as it is published or by construction
  double least = 0.0;        // what it is there
  std::uint32_t levels = 3;  // a grid of about 60 points
};

// Branin and Hartmann 6 (Dixon and Szegoe, Towards Global Optimisation 2, 1978), one of every kind
// of field, and one whose fields hang on a choice.
std::vector<ProposalTask> proposal_tasks();

// The space as JSON: a list of objects with path and log, linear, integer and step, or choice, and
// only_with, a list of a path and values.
std::string space_json(const study::Space& space);

}  // namespace troupe::bench
