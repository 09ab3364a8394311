#pragma once

// Functions that stand for the figure of a training, by which bench_proposals compares how settings
// are chosen. All are to be made small.

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/error.h"
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

// The figures of trainings: the answer of `troupe study DIR --report --json` about a grid, in a
// file. Fields of numbers become whole numbers that count their values, so that a point is always
// one that was trained. Those that failed cost as much as the worst of the others.
runtime::Result<ProposalTask> read_table(const std::string& path);

// The space as JSON: a list of objects with path and log, linear, integer and step, or choice, and
// only_with, a list of a path and values.
std::string space_json(const study::Space& space);

}  // namespace troupe::bench
