#include "launch/run/run_monitor.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "config/cluster_plan.h"
#include "launch/folder/nodes_file.h"

namespace troupe::launch {
namespace {

telemetry::RunFacts facts_of(const LocalRunRequest& request, const TrainingSetup& setup) {
  const config::Topology& topology = request.topology;
  telemetry::RunFacts facts;
  facts.name = topology.name;
  facts.model = topology.model.zoo.value_or(topology.name);
  facts.version = request.version;
  for (const model::SlotKind slot : setup.options.schedule) {
    facts.schedule.push_back(model::slot_name(slot));
  }
  for (const model::LossTerm& loss : topology.model.gan.losses) {
    facts.losses.emplace_back(loss.output, loss.weight);
  }
  facts.iterations = setup.iterations;
  facts.iterations_per_epoch = setup.options.iterations_per_epoch;
  facts.micro_batches = setup.options.micro_batches;
  facts.micro_batch = setup.options.micro_batch;
  facts.price_per_node_hour = topology.monitor.price_per_node_hour;
  return facts;
}

telemetry::NodeFacts this_node(const LocalRunRequest& request) {
  const bool alone = request.members == 0;
  return {alone ? kLocalNode : config::kHeadNode, host_name(), alone ? "all" : "head",
          static_cast<std::uint64_t>(::getpid()), "running",   ""};
}

}  // namespace

actors::MonitorOptions monitor_options(const LocalRunRequest& request, const RunFolder& folder,
                                       const TrainingSetup& setup, std::uint64_t first_step) {
  actors::MonitorOptions options;
  options.sinks.metrics_path = folder.file("metrics.jsonl");
  options.sinks.history = request.history;
  if (request.topology.monitor.tensorboard) options.sinks.tensorboard_folder = folder.path();
  options.sinks.publish = request.topology.monitor.publish;
  options.showers_folder = folder.file("showers");
  options.facts = facts_of(request, setup);
  options.node = this_node(request);
  options.losses = request.topology.model.gan.losses;
  options.schedule = setup.options.schedule;
  options.first_step = first_step;
  options.progress = {request.progress, request.progress_on_terminal,
                      first_step / setup.options.schedule.size(), setup.iterations,
                      setup.options.iterations_per_epoch};
  return options;
}

void recall_metrics(const RunFolder& folder, telemetry::History& history) {
  std::ifstream file(folder.file("metrics.jsonl"), std::ios::binary | std::ios::ate);
  const std::streamoff bytes = file.tellg();
  if (bytes <= 0) return;
  const auto most = static_cast<std::streamoff>(kMostRecalled);
  file.seekg(std::max<std::streamoff>(bytes - most, 0));
  for (std::string line; std::getline(file, line);) {
    // The first may lack its beginning.
    if (const auto record = telemetry::read_record(line); record.ok()) history.take(*record);
  }
}

}  // namespace troupe::launch
