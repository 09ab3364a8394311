#pragma once

// Training without actors, for tests that look at single steps: one share that owns every
// micro-batch, events made from counters.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/topology_file.h"
#include "model/backend.h"
#include "model/exact_sum.h"
#include "pipeline/steps/step_computer.h"
#include "pipeline/steps/training_state.h"
#include "runtime/base/thread_team.h"

namespace troupe::training_test {

// The zoo model as a topology with these overrides.
config::Topology zoo_topology(const std::string& model,
                              const std::vector<std::string>& overrides = {});

// All that one replica adds to a step, and its header but for the state's hash.
struct Contribution {
  pipeline::StepHeader header;
  pipeline::SumLayout layout;
  runtime::Buffer sums;
};
Contribution contribution_of(const pipeline::StepShare& step, std::uint32_t attempt,
                             const std::vector<std::int16_t>& scales);

// The record of a step whose only micro-batch, of so many events, contributed these values.
pipeline::StepRecord record_of(const model::ContributionLayout& layout,
                               const std::vector<double>& values, std::uint64_t step,
                               std::uint64_t events);

class Alone {
 public:
  Alone(const config::Topology& topology, std::unique_ptr<model::Backend> backend, int threads = 1);

  // Sparse images and conditions of one micro-batch, as make_oracle.py makes them.
  pipeline::MicroBatch micro_batch(std::uint32_t index, std::uint64_t data_seed) const;

  pipeline::StepComputer& computer() { return computer_; }
  // Computes and reduces the next step of `state` from these micro-batches, retrying once if
  // flagged, without applying it. Leaves the number of attempts in the record's header.
  pipeline::StepRecord reduce_step(const pipeline::TrainingState& state,
                                   const std::vector<pipeline::MicroBatch>& micro_batches);
  // reduce_step and apply, with all micro-batches of the iteration made from its number.
  void step(pipeline::TrainingState& state);

  pipeline::TrainingState initial_state() const;
  const model::Gan& gan() const { return *gan_; }
  const pipeline::TrainingOptions& options() const { return options_; }

 private:
  std::unique_ptr<model::Backend> backend_;
  std::vector<pipeline::DataColumn> columns_;
  pipeline::TrainingOptions options_;
  std::unique_ptr<const model::Gan> gan_;
  runtime::ThreadTeam team_;
  pipeline::StepComputer computer_;
};

}  // namespace troupe::training_test
