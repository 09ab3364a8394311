#include "launch/run/run_monitor.h"

#include <unistd.h>

#include <utility>

#include "config/plan.h"
#include "launch/folder/metrics_file.h"
#include "launch/folder/nodes_file.h"
#include "runtime/base/host_name.h"

namespace troupe::launch {
namespace {

telemetry::RunFacts facts_of(const LocalRunRequest& request, const TrainingSetup& setup) {
  const config::Topology& topology = setup.topology;
  telemetry::RunFacts facts;
  facts.name = topology.name;
  facts.model = topology.model_name();
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
  return {alone ? kLocalNode : config::kHeadNode,
          runtime::host_name(),
          alone ? "all" : "head",
          static_cast<std::uint64_t>(::getpid()),
          "running",
          ""};
}

}  // namespace

actors::MonitorOptions monitor_options(const LocalRunRequest& request, const RunFolder& folder,
                                       const TrainingSetup& setup, std::uint64_t first_step) {
  actors::MonitorOptions options;
  options.sinks.metrics_path = folder.file(MetricsFile::kName);
  options.sinks.history = request.history;
  if (setup.topology.monitor.tensorboard) options.sinks.tensorboard_folder = folder.path();
  options.sinks.publish = setup.topology.monitor.publish;
  options.showers_folder = folder.file(RunFolder::kShowers);
  options.facts = facts_of(request, setup);
  options.node = this_node(request);
  options.losses = setup.topology.model.gan.losses;
  options.schedule = setup.options.schedule;
  options.first_step = first_step;
  options.progress = {request.progress, request.progress_on_terminal,
                      first_step / setup.options.schedule.size(), setup.iterations,
                      setup.options.iterations_per_epoch};
  return options;
}

}  // namespace troupe::launch
