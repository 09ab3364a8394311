#include "launch/run/orphan_folder.h"

#include <span>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "config/topology_identity.h"
#include "launch/folder/run_folder.h"
#include "pipeline/checkpoint/checkpoint.h"
#include "pipeline/checkpoint/checkpoint_folder.h"

namespace troupe::launch {

std::string orphan_folder(const std::string& node, std::time_t now) {
  return fmt::format("runs/{}-{:%Y%m%d-%H%M%S}", node, fmt::localtime(now));
}

runtime::Result<void> write_state(const RunFolder& folder, const config::Topology& topology,
                                  const std::string& effective, const TrainingSetup& setup,
                                  const pipeline::TrainingState& state, runtime::Disk& disk) {
  pipeline::Checkpoint checkpoint;
  checkpoint.state = state;
  checkpoint.topology = effective;
  checkpoint.topology_hash = config::topology_hash(topology);
  checkpoint.model = topology.model.zoo.value_or(topology.name);
  ASSIGN_OR_RETURN(const runtime::Buffer file,
                   pipeline::encode_checkpoint(checkpoint, *setup.gan, setup.options));
  const std::string name = pipeline::checkpoint_name(state.step(setup.options.schedule.size()));
  return disk.replace(folder.checkpoints() + "/" + name, file.bytes());
}

// The topology last: with it the folder is a run's.
runtime::Result<void> write_orphan(const std::string& folder, const config::Topology& topology,
                                   const std::string& effective, const TrainingSetup& setup,
                                   const pipeline::TrainingState& state, runtime::Disk& disk) {
  ASSIGN_OR_RETURN(const RunFolder run, RunFolder::create(folder, disk));
  RETURN_IF_ERROR(write_state(run, topology, effective, setup, state, disk));
  return disk.replace(run.file("topology.yaml"), std::as_bytes(std::span{effective}));
}

}  // namespace troupe::launch
