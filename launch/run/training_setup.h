#pragma once

// Every node of a run needs these before its actors exist: backend, networks, data and the plan.
// The same topology gives the same on every node, which nodes make sure of when they meet.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/spawn.h"
#include "config/plan_links.h"
#include "config/topology.h"
#include "config/topology_file.h"
#include "launch/run/training_data.h"
#include "launch/run/turn_order.h"
#include "model/backend.h"
#include "model/gan.h"
#include "pipeline/data/image_judge.h"
#include "pipeline/scaling/iteration_time.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/base/log.h"
#include "runtime/plan.h"
#include "runtime/transport/packets.h"

namespace troupe::launch {

// How many members there are.
struct RunSize {
  std::uint32_t members = 0;  // that begin; 0: all in one process
  std::uint32_t slots = 0;    // for these and all that may be there besides while it goes on
  std::uint32_t restart =
      0;  // of these the first behind the members, for those that replace others
  // The first slot that many processes may have, one after the other.
  std::uint32_t reused_from() const { return members + restart; }
};
// With slots for as many as cluster.failure.restart allows to replace dead ones, and behind these
// for cluster.joiners and the nodes of pools; none in one process.
RunSize size_of_run(const config::Topology& topology, std::uint32_t members);

struct TrainingSetup {
  config::Topology topology;  // with the micro-batches that so many members make (config::scaled)
  // The same as it was asked for: as text, for checkpoints, members and RUN/topology.yaml; and what
  // it says of the trained state.
  std::string topology_text;
  runtime::Hash128 topology_hash;
  RunSize size;
  std::unique_ptr<model::Backend> backend;
  std::unique_ptr<const model::Gan> gan;
  runtime::Plan plan;
  std::vector<std::uint64_t> replica_weights{};   // of all replicas of the run
  DataIdentity identity{};                        // of the run's data
  std::optional<TrainingData> data{};             // none: the head has it, and feeds this process
  std::unique_ptr<pipeline::ImageJudge> judge{};  // of the test data; null: none is asked for
  pipeline::TrainingOptions options{};            // the topology's, which know the size of the data
  std::uint64_t iterations = 0;                   // of the whole run
  std::string origin{};  // of its first weights, as its checkpoints have it
  TurnLog turns{};       // of the run whose order workers take turns in; null: in any

  actors::TrainingContext context() const { return {*gan, *backend, options}; }
};

// The sizes from which the plan's bounds follow.
config::NetworkSizes sizes_of(const config::Topology& topology, const model::Gan& gan);
// By which so many members are one ring or a ring of rings.
pipeline::RingCosts ring_costs(const config::Topology& topology, const model::Gan& gan,
                               std::uint32_t members);
// What config::ring_text() says of the members that the run begins with.
std::string ring_text(const TrainingSetup& setup);
// Weights, moving statistics and optimisers of both networks of one replica.
std::int64_t state_bytes(const config::Topology& topology, const model::Gan& gan);

// The plan of a run of that size, by the topology as it was asked for. Errors say where in the file
// something stands that cannot be done, that for so many workers (config::check_workers) included.
runtime::Result<runtime::Plan> plan_of_run(const config::LoadedTopology& asked,
                                           const model::Gan& gan, const RunSize& size);

// Compiles the networks, opens the judge, makes or opens the data. The quick steps come first, so
// that a run which cannot begin is refused before data is made. `with_test_data`: as far as the
// topology asks for any.
runtime::Result<TrainingSetup> set_up_training(const config::LoadedTopology& asked,
                                               const RunSize& size, const std::string& data_folder,
                                               bool with_test_data, runtime::Log& log);

// The same for a member of a run whose head has data that is said to be this: none is looked for.
runtime::Result<TrainingSetup> set_up_training(const config::LoadedTopology& asked,
                                               const RunSize& size, const DataIdentity& of_head);

// The parts of the setup's loaders, replicas and reducer: those of member `member`, or all of them
// in one process. A member without data leaves its loader out of its node.
actors::NodeParts computing_parts(TrainingSetup& setup, runtime::Disk& disk, std::uint32_t member);

// For a run that begins with the state. Hooks for what happens to processes are left to
// be filled in.
actors::CoordinatorOptions coordinator_options(const TrainingSetup& setup,
                                               actors::StatePointer state);

// What an iteration of the run takes, as far as that is known before it is measured.
pipeline::IterationWork iteration_work(const TrainingSetup& setup);

// Nodes of one run must have these in common. A member without data has the head's fingerprint.
std::vector<runtime::Term> terms_of(const TrainingSetup& setup);

}  // namespace troupe::launch
