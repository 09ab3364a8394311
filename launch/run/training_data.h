#pragma once

// The events a run trains on and is validated with: made if they are synthetic, opened, counted.

#include <optional>
#include <string>
#include <vector>

#include "config/codec.h"
#include "config/topology.h"
#include "launch/meeting/invitation.h"
#include "pipeline/data/dataset.h"
#include "pipeline/data/sampler.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/thread_team.h"

namespace troupe::launch {

struct TrainingData {
  pipeline::Dataset train;
  std::optional<pipeline::Dataset> test;  // none when validation is off
  pipeline::Sampler sampler;
  // The copies of files on servers stay while these live.
  std::vector<runtime::Descriptor> held = {};

  DataIdentity identity() const {
    return {train.fingerprint(), sampler.iterations_per_epoch(),
            sampler.short_iteration().micro_batches};
  }
};

// `with_test_data`: open what the topology validates with, if it does.
//
// `data_folder` keeps synthetic showers, the index of files and caches between runs. Says in the
// log what it does and found. Errors are kData.
runtime::Result<TrainingData> open_training_data(const config::Topology& topology,
                                                 const std::string& data_folder,
                                                 bool with_test_data, runtime::ThreadTeam& team,
                                                 runtime::Log& log);

// Whether that can succeed, found out by opening the same data with the same code, which takes as
// long as a run's own first look at them. `origins`: of the topology's values, for warnings.
// Nothing is made or kept: of synthetic showers only those are looked at that stand in
// data.synthetic.folder already.
runtime::Result<void> try_training_data(const config::Topology& topology,
                                        const config::Origins& origins, runtime::Log& log);

}  // namespace troupe::launch
