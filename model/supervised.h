#pragma once

// Training of any network by examples: inputs with the outputs they should have, one loss, one
// optimiser, and no other network around it.
//
// An update is made of micro-batches, each normalised by itself. Their gradients are summed in the
// order of their numbers, in double, so that the bits depend neither on the threads nor on which of
// them computes what. Examples come in an order drawn for each pass over all of them; an update may
// reach from one pass into the next.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/backend.h"
#include "model/learning_rate.h"
#include "model/network.h"
#include "model/optimiser.h"
#include "model/program.h"
#include "runtime/base/error.h"
#include "runtime/base/thread_team.h"

namespace troupe::model {

// One behind the other: `inputs` and `targets` have as many numbers per example as the network's
// input and output.
struct Examples {
  std::vector<float> inputs, targets;
};

struct SupervisedOptions {
  LossKind loss = LossKind::kBinaryCrossentropy;
  OptimiserOptions optimiser{.kind = OptimiserKind::kAdam};
  LearningRateOptions rate;
  std::int64_t micro_batch = 32;    // examples of a micro-batch, from 1
  std::uint32_t micro_batches = 4;  // of an update, from 1
  std::uint64_t seed = 1;           // of the weights, the order of examples and dropout
};

// A network in training. Weights begin as initialise_parameters() has them for network 0.
class SupervisedNetwork {
 public:
  // The backend computes on the host, CHECKed, and outlives it. kTopology: the network has a
  // problem, or more than one output.
  static runtime::Result<std::unique_ptr<SupervisedNetwork>> create(
      const NetworkDescription& network, const SupervisedOptions& options, const Backend& backend);

  // Makes so many updates more from the examples, of which there is at least one. Returns the mean
  // loss of the last update. One thread, which the team's others help.
  double train(const Examples& examples, std::uint64_t updates, runtime::ThreadTeam& team);
  // The outputs in inference mode, one behind the other, for inputs likewise.
  std::vector<float> predict(std::span<const float> inputs, runtime::ThreadTeam& team);

  const Program& program() const { return *program_; }
  std::uint64_t updates() const { return counters_.updates; }

 private:
  // The part of a micro-batch in an update.
  struct Part {
    std::vector<float> gradients, statistics, inputs, targets;
    float loss = 0.0F;
  };

  SupervisedNetwork(std::unique_ptr<const Program> program, std::unique_ptr<Kernel> loss,
                    const SupervisedOptions& options, const Backend& backend);
  Bindings bindings() const;
  void make_workspaces(const runtime::ThreadTeam& team);
  void take_examples(const Examples& examples);
  void compute(std::size_t part, Workspace& workspace);
  void update();
  std::span<const float> mean_of(std::vector<float> Part::*content);

  std::unique_ptr<const Program> program_;
  std::unique_ptr<Kernel> loss_;
  SupervisedOptions options_;
  const Backend& backend_;
  std::vector<double> momenta_;  // of program_->parameters().moving
  std::vector<float> weights_, moving_, optimiser_arrays_, mean_;
  OptimiserCounters counters_;
  LearningRateState rate_;
  std::vector<Part> parts_;
  std::vector<Workspace> workspaces_;  // one per thread
  std::uint64_t taken_ = 0;            // examples, of all passes
  std::vector<std::uint32_t> order_;   // of the pass
};

}  // namespace troupe::model
