#include "launch/local_run.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/spawn.h"
#include "config/plan.h"
#include "launch/backend_choice.h"
#include "launch/run_signals.h"
#include "launch/run_summary.h"
#include "launch/starting_state.h"
#include "launch/training_data.h"
#include "pipeline/micro_batch.h"
#include "runtime/node.h"

namespace troupe::launch {
namespace {

using runtime::Result;

// A turn of a large model can take tens of seconds; a stop waits for the one that runs.
constexpr auto kShutdownDeadline = std::chrono::minutes(5);
constexpr int kSchedulerThreads = 1;

// Checked: its first problem comes back as the error.
Result<runtime::Plan> make_plan(const config::Topology& topology, const model::Gan& gan) {
  config::LocalPlanOptions options;
  options.replicas = topology.replica.count;
  options.micro_batches = topology.train.options.micro_batches;
  options.loader_credits = static_cast<std::uint32_t>(topology.loader.credits);
  const std::int64_t event_bytes = gan.discriminator().input_shape().elements() * 4 + 3 * 4 + 8;
  options.batch_bytes = gan.batch() * event_bytes;
  for (const model::SlotKind slot : topology.train.options.schedule) {
    options.contribution_elements =
        std::max(options.contribution_elements, gan.contributions(slot).size);
  }
  options.segment_bytes = topology.reducer.segment_bytes;
  options.validator = validates(topology);
  runtime::Plan plan = config::make_local_plan(options, topology.links);
  if (const auto problems = runtime::check(plan); !problems.empty()) return problems.front();
  return plan;
}

// What the run is made of, prepared before any actor exists.
struct Prepared {
  std::unique_ptr<model::Backend> backend;
  TrainingData data;
  std::unique_ptr<const model::Gan> gan;
  runtime::Plan plan;
  pipeline::TrainingOptions options;
  actors::StatePointer state;
  std::uint64_t iterations = 0;  // of the whole run
};

Result<Prepared> prepare(const LocalRunRequest& request, const RunFolder& folder,
                         runtime::Disk& disk, runtime::Log& log) {
  const config::Topology& topology = request.topology;
  // First what is quick, so that a topology that cannot run is refused before data is made.
  std::unique_ptr<model::Backend> backend = make_backend(topology.model.kernels);
  pipeline::TrainingOptions options = topology.train.options;
  ASSIGN_OR_RETURN(auto gan,
                   model::Gan::compile(topology.model.gan, *backend, options.micro_batch));
  ASSIGN_OR_RETURN(runtime::Plan plan, make_plan(topology, *gan));
  const int threads = static_cast<int>(std::max<long>(1, ::sysconf(_SC_NPROCESSORS_ONLN)));
  runtime::ThreadTeam team(threads);
  ASSIGN_OR_RETURN(TrainingData data, open_training_data(topology, request.data_folder, team, log));
  options.iterations_per_epoch = data.sampler.iterations_per_epoch();
  const RunIdentity identity{request.topology_hash, backend->numerics_class(),
                             data.train.fingerprint()};
  pipeline::TrainingState state;
  if (request.resume) {
    ASSIGN_OR_RETURN(state, read_newest_state(folder, disk, *gan, options, identity, log));
    RETURN_IF_ERROR(folder.cut_metrics(state.step(options.schedule.size())));
  } else {
    state =
        pipeline::initial_state(*gan, options, identity.numerics_class, identity.data_fingerprint);
  }
  std::uint64_t iterations = topology.train.epochs * options.iterations_per_epoch;
  if (topology.train.iterations) iterations = std::min(iterations, *topology.train.iterations);
  return Prepared{
      std::move(backend), std::move(data),
      std::move(gan),     std::move(plan),
      std::move(options), std::make_shared<const pipeline::TrainingState>(std::move(state)),
      iterations};
}

actors::NodeParts make_parts(const LocalRunRequest& request, const RunFolder& folder,
                             runtime::Disk& disk, Prepared& prepared) {
  const config::Topology& topology = request.topology;
  actors::NodeParts parts{{*prepared.gan, *prepared.backend, prepared.options},
                          disk,
                          prepared.data.train,
                          prepared.data.sampler,
                          prepared.data.test ? &*prepared.data.test : nullptr,
                          prepared.state,
                          {},
                          {},
                          {},
                          {},
                          {},
                          {},
                          {}};
  const std::uint32_t replicas = topology.replica.count;
  const std::vector<std::uint64_t> speeds(replicas, 1);
  parts.coordinator = {replicas, prepared.data.test.has_value()};
  parts.loader.first_iteration = prepared.state->iteration;
  parts.loader.iterations = prepared.iterations;
  parts.loader.owners = pipeline::assign_micro_batches(prepared.options.micro_batches, speeds);
  parts.loader.replicas = replicas;
  parts.replica.threads = static_cast<int>(topology.replica.threads);
  parts.replica.segment_bytes = topology.reducer.segment_bytes;
  parts.replica.checkpoint = topology.checkpointer.every;
  parts.replica.validation = topology.validator.every;
  parts.reducer = {replicas, prepared.options.micro_batches};
  parts.checkpointer = {folder.checkpoints(), topology.checkpointer.keep,
                        request.effective_topology, request.topology_hash,
                        topology.model.zoo.value_or(topology.name)};
  parts.validator.events = topology.validator.events;
  parts.validator.units = pipeline::image_units(topology.data.dataset);
  parts.monitor.metrics_path = folder.file("metrics.jsonl");
  parts.monitor.losses = topology.model.gan.losses;
  parts.monitor.schedule = prepared.options.schedule;
  parts.monitor.progress = {request.progress, request.progress_on_terminal,
                            prepared.state->iteration, prepared.iterations,
                            prepared.options.iterations_per_epoch};
  return parts;
}

}  // namespace

Result<LocalRunResult> run_locally(const LocalRunRequest& request, const RunFolder& folder,
                                   runtime::Disk& disk, runtime::Log& log) {
  RunSignals signals;
  ASSIGN_OR_RETURN(Prepared prepared, prepare(request, folder, disk, log));
  actors::NodeParts parts = make_parts(request, folder, disk, prepared);
  // From here on the folder holds a run; one that could not begin leaves it free.
  RETURN_IF_ERROR(disk.replace(folder.file("topology.yaml"),
                               std::as_bytes(std::span{request.effective_topology})));

  runtime::NodeOptions options;
  options.scheduler_threads = kSchedulerThreads;
  options.shutdown_deadline = kShutdownDeadline;
  options.stuck_after = request.topology.cluster.failure.stuck_after;
  const runtime::SteadyClock clock;
  RETURN_IF_ERROR(write_nodes(folder, disk, "running"));
  runtime::Node node(prepared.plan, actors::make_actor_factory(parts), options, clock, log);
  const runtime::NodeEnd end = signals.run(node);

  LocalRunResult result;
  result.error = end.error;
  result.signal = signals.stopped_by();
  const actors::RunOutcome& outcome = *parts.outcome;
  if (outcome.validation) result.table = outcome.validation->table;
  result.summary_json = summary_json(outcome, prepared.options.schedule.size(), result.error);
  const std::string summary = result.summary_json + "\n";
  RETURN_IF_ERROR(
      disk.replace(folder.file("summary.json"), std::as_bytes(std::span<const char>{summary})));
  RETURN_IF_ERROR(write_nodes(folder, disk, "ended"));
  return result;
}

Result<LocalBounds> local_bounds(const config::Topology& topology) {
  const auto backend = make_backend(topology.model.kernels);
  const auto& options = topology.train.options;
  ASSIGN_OR_RETURN(const auto gan,
                   model::Gan::compile(topology.model.gan, *backend, options.micro_batch));
  LocalBounds bounds;
  ASSIGN_OR_RETURN(bounds.plan, make_plan(topology, *gan));
  for (const runtime::LinkPlan& link : bounds.plan.links) bounds.message_bytes += link.byte_credits;
  for (const auto* program : {&gan->generator(), &gan->discriminator()}) {
    bounds.arena_bytes +=
        static_cast<std::int64_t>(program->arena_bytes() + program->scratch_bytes());
  }
  bounds.arena_bytes *= topology.replica.threads;
  const auto state_size = [](const model::Program& program,
                             const model::OptimiserOptions& optimiser) {
    const model::ParameterLayout& layout = program.parameters();
    return layout.size() + layout.weights_size * model::optimiser_arrays(optimiser);
  };
  bounds.state_bytes = static_cast<std::int64_t>(sizeof(float)) *
                       (state_size(gan->generator(), options.generator_optimiser) +
                        state_size(gan->discriminator(), options.discriminator_optimiser));
  return bounds;
}

}  // namespace troupe::launch
