#pragma once

// What every node of a run needs before its actors exist: backend, networks, data and the plan. The
// same topology gives the same on every node, which nodes make sure of when they meet.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/spawn.h"
#include "config/topology.h"
#include "config/topology_file.h"
#include "launch/run/training_data.h"
#include "model/backend.h"
#include "model/gan.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/base/log.h"
#include "runtime/plan.h"
#include "runtime/transport/packets.h"

namespace troupe::launch {

struct TrainingSetup {
  std::unique_ptr<model::Backend> backend;
  std::unique_ptr<const model::Gan> gan;
  runtime::Plan plan;
  std::vector<std::uint64_t> replica_weights;  // of all replicas of the run
  DataIdentity identity;                       // of the run's data
  std::optional<TrainingData> data;            // none: the head has it, and feeds who computes here
  pipeline::TrainingOptions options;
  std::uint64_t iterations = 0;  // of the whole run
  std::uint32_t places = 0;      // see RunSize

  actors::TrainingContext context() const { return {*gan, *backend, options}; }
};

// How many members there are.
struct RunSize {
  std::uint32_t members = 0;  // that begin; 0: all in one process
  std::uint32_t places = 0;   // for these and all that may join while it goes on
  std::uint32_t restart = 0;  // of these the first behind the members, for who replaces dead ones
};
// With places for as many as cluster.failure.restart allows to replace dead ones, and behind these
// for cluster.joiners; none in one process.
RunSize size_of_run(const config::Topology& topology, std::uint32_t members);

// The plan of the topology for a run of that size. `origins` say where in the file something stands
// that cannot be done, that for so many workers (config::check_workers) included.
runtime::Result<runtime::Plan> make_plan(const config::Topology& topology,
                                         const config::Origins& origins, const model::Gan& gan,
                                         const RunSize& size);

// Of every replica of such a run, as pipeline::assign_micro_batches takes them. kTopology: the
// shares are of another number of members.
runtime::Result<std::vector<std::uint64_t>> replica_weights(const config::Topology& topology,
                                                            const model::Gan& gan,
                                                            std::uint32_t members);

// Compiles the networks, makes or opens the data. First what is quick, so that what cannot run is
// refused before data is made. `with_test_data`: as far as the topology asks for any. `origins` as
// in make_plan().
runtime::Result<TrainingSetup> set_up_training(const config::Topology& topology,
                                               const RunSize& size, const std::string& data_folder,
                                               bool with_test_data, runtime::Log& log,
                                               const config::Origins& origins = {});

// The same for a member of a run whose head has data that is said to be this: none is looked for.
runtime::Result<TrainingSetup> set_up_training(const config::Topology& topology,
                                               const RunSize& size, const DataIdentity& of_head);

// The parts of the setup's loaders, replicas and reducer: those of member `member`, or all of them
// in one process. Of a member without data its loader is to be left out of the node.
actors::NodeParts computing_parts(TrainingSetup& setup, const config::Topology& topology,
                                  runtime::Disk& disk, std::uint32_t members, std::uint32_t member);

// Of a run that begins with the state. What happens to processes is left to be filled in.
actors::CoordinatorOptions coordinator_options(const TrainingSetup& setup,
                                               const config::Topology& topology,
                                               std::uint32_t members, actors::StatePointer state);

// What nodes of one run must have in common. A member without data has the head's fingerprint.
std::vector<runtime::Term> terms_of(const TrainingSetup& setup,
                                    const runtime::Hash128& topology_hash);

// Of a micro-batch with its conditions and event ids, and of the largest step's contribution.
std::int64_t batch_bytes(const model::Gan& gan);
std::int64_t contribution_elements(const config::Topology& topology, const model::Gan& gan);
// Of one replica: weights, moving statistics and optimisers of both networks.
std::int64_t state_bytes(const config::Topology& topology, const model::Gan& gan);

}  // namespace troupe::launch
