#pragma once

// Whether a study's space and objective can be those of its topology.

#include <cstdint>
#include <string>
#include <vector>

#include "config/topology.h"
#include "runtime/base/error.h"
#include "study/study_file.h"

namespace troupe::study {

// The topology without any setting. kTopology: it is wrong by itself; or every problem of the
// study, with its place.
runtime::Result<config::Topology> check_against_topology(const LoadedStudy& loaded);

// The settings of a run of this fold, so that each event is tested with in one fold.
std::vector<std::string> fold_settings(std::uint32_t folds, std::uint32_t number);

// LoadedStudy::rungs of a study that suits the topology.
std::vector<std::uint64_t> rungs_of(const Study& study, const config::Topology& topology);

}  // namespace troupe::study
