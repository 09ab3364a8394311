#pragma once

// The table of the topology language, section by section. Most records read into a whole Topology,
// so that a section of the file need not be a struct of the program.

#include "config/record.h"
#include "config/topology.h"

namespace troupe::config {

// The whole file. Rules between fields are checked with it; derived values are not set.
const Record<Topology>& topology_record();

// The sections, each made anew: topology_record() is where they are used.
std::shared_ptr<Record<Topology>> model_record();
std::shared_ptr<Record<Topology>> data_record();
std::shared_ptr<Record<Topology>> train_record();
std::shared_ptr<Record<Topology>> actors_record();
std::shared_ptr<Record<ClusterSection>> cluster_record();

// A part of train_record().
RecordOf<pipeline::StrategyOptions> strategy_record();
// train.stop, whose networks are those of the task.
CodecOf<Topology> stop_codec();

// For fields that are of one task.
inline bool is_gan(const Topology& topology) {
  return topology.model.gan.task == model::Task::kGan;
}
inline bool is_diffusion(const Topology& topology) {
  return topology.model.gan.task == model::Task::kDiffusion;
}
// A task of one network.
inline bool has_network(const Topology& topology) { return !is_gan(topology); }

// Parts of the last one.
CodecOf<std::vector<PoolSection>> pools();
CodecOf<std::optional<BurstSection>> burst();
void check_pools(const ClusterSection& cluster, Reader& reader);

}  // namespace troupe::config
