#include "launch/local_run.h"

#include <sys/resource.h>
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
#include "launch/run_trace.h"
#include "launch/starting_state.h"
#include "launch/training_data.h"
#include "pipeline/micro_batch.h"
#include "runtime/node.h"

namespace troupe::launch {
namespace {

using runtime::Result;

constexpr int kSchedulerThreads = 1;

std::int64_t batch_bytes(const model::Gan& gan) {
  const std::int64_t event_bytes = gan.discriminator().input_shape().elements() * 4 + 3 * 4 + 8;
  return gan.batch() * event_bytes;
}

// Of the largest step of the schedule.
std::int64_t contribution_elements(const config::Topology& topology, const model::Gan& gan) {
  std::int64_t most = 0;
  for (const model::SlotKind slot : topology.train.options.schedule) {
    most = std::max(most, gan.contributions(slot).size);
  }
  return most;
}

Result<runtime::Plan> make_plan(const config::Topology& topology, const config::Origins& origins,
                                const model::Gan& gan) {
  config::LocalPlanOptions options;
  options.replicas = topology.replica.count;
  options.micro_batches = topology.train.options.micro_batches;
  options.loader_credits = static_cast<std::uint32_t>(topology.loader.credits);
  options.batch_bytes = batch_bytes(gan);
  options.contribution_elements = contribution_elements(topology, gan);
  options.segment_bytes = topology.reducer.segment_bytes;
  options.validator = validates(topology);
  return config::make_local_plan(options, topology.links, origins);
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
  // Of a run that goes on: what is known of it up to its state.
  std::optional<std::uint64_t> saved_step, validated_step;
  std::optional<pipeline::BestCheckpoint> best;
};

Result<Prepared> prepare(const LocalRunRequest& request, const RunFolder& folder,
                         runtime::Disk& disk, runtime::Log& log) {
  const config::Topology& topology = request.topology;
  // First what is quick, so that a topology that cannot run is refused before data is made.
  std::unique_ptr<model::Backend> backend = make_backend(topology.model.kernels);
  pipeline::TrainingOptions options = topology.train.options;
  ASSIGN_OR_RETURN(auto gan,
                   model::Gan::compile(topology.model.gan, *backend, options.micro_batch));
  ASSIGN_OR_RETURN(runtime::Plan plan, make_plan(topology, {}, *gan));
  const int threads = static_cast<int>(std::max<long>(1, ::sysconf(_SC_NPROCESSORS_ONLN)));
  runtime::ThreadTeam team(threads);
  ASSIGN_OR_RETURN(TrainingData data, open_training_data(topology, request.data_folder, team, log));
  options.iterations_per_epoch = data.sampler.iterations_per_epoch();
  const RunIdentity identity{request.topology_hash, backend->numerics_class(),
                             data.train.fingerprint()};
  pipeline::TrainingState state;
  std::optional<std::uint64_t> saved_step, validated_step;
  std::optional<pipeline::BestCheckpoint> best;
  if (request.resume) {
    ASSIGN_OR_RETURN(state, read_newest_state(folder, disk, *gan, options, identity, log));
    const std::uint64_t step = state.step(options.schedule.size());
    ASSIGN_OR_RETURN(const bool validated, folder.cut_metrics(step));
    if (step > 0) saved_step = step;
    if (validated) validated_step = step;
    best = read_best(folder, disk, step, log);
  } else {
    state =
        pipeline::initial_state(*gan, options, identity.numerics_class, identity.data_fingerprint);
  }
  std::uint64_t iterations = topology.train.epochs * options.iterations_per_epoch;
  if (topology.train.iterations) iterations = std::min(iterations, *topology.train.iterations);
  if (request.resume && state.iteration >= iterations) {
    log.info(
        fmt::format("already at iteration {} of {}: nothing to train; raise train.epochs or "
                    "train.iterations to go on",
                    state.iteration, iterations));
  }
  return Prepared{
      std::move(backend), std::move(data),
      std::move(gan),     std::move(plan),
      std::move(options), std::make_shared<const pipeline::TrainingState>(std::move(state)),
      iterations,         saved_step,
      validated_step,     best};
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
  parts.checkpointer = {folder.checkpoints(),
                        topology.checkpointer.keep,
                        request.effective_topology,
                        request.topology_hash,
                        topology.model.zoo.value_or(topology.name),
                        prepared.saved_step,
                        prepared.best};
  parts.validator.events = topology.validator.events;
  parts.validator.units = pipeline::image_units(topology.data.dataset);
  parts.validator.told_step = prepared.validated_step;
  parts.monitor.metrics_path = folder.file("metrics.jsonl");
  parts.monitor.losses = topology.model.gan.losses;
  parts.monitor.schedule = prepared.options.schedule;
  parts.monitor.progress = {request.progress, request.progress_on_terminal,
                            prepared.state->iteration, prepared.iterations,
                            prepared.options.iterations_per_epoch};
  return parts;
}

void tell_dropped(const std::vector<runtime::LinkStats>& links, const RunFolder& folder,
                  runtime::Log& log) {
  std::int64_t dropped = 0;
  for (const runtime::LinkStats& link : links) dropped += link.dropped;
  if (dropped == 0) return;
  log.warning(
      fmt::format("{} lacks {} lines: they came faster than they could be written; "
                  "training and checkpoints are whole",
                  folder.file("metrics.jsonl"), dropped));
}

// For a run that failed.
void tell_unsaved(const actors::RunOutcome& outcome, std::size_t slots, const RunFolder& folder,
                  runtime::Log& log) {
  if (outcome.saved) return;
  const std::string lost =
      outcome.state == nullptr
          ? std::string("what was trained after the newest checkpoint")
          : fmt::format("the state after {} steps", outcome.state->step(slots));
  log.warning(fmt::format("{} was not saved; --resume {} goes on from the newest checkpoint", lost,
                          folder.path()));
}

Result<void> write_end(const std::string& summary_json, const RunFolder& folder,
                       runtime::Disk& disk) {
  const std::string summary = summary_json + "\n";
  const auto written =
      disk.replace(folder.file("summary.json"), std::as_bytes(std::span<const char>{summary}));
  const auto nodes = write_nodes(folder, disk, "ended");
  return written.ok() ? nodes : written;
}

// Threads of these actors still run, on objects that must not go away.
[[noreturn]] void abandon(const runtime::NodeEnd& end, const runtime::Log& log) {
  log.error(end.error->message);
  log.error(
      fmt::format("abandoned: {}; the process ends without them", fmt::join(end.abandoned, ", ")));
  ::_exit(runtime::exit_code(end.error->kind));
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
  options.shutdown_deadline = request.shutdown_deadline;
  options.stuck_after = request.topology.cluster.failure.stuck_after;
  const runtime::SteadyClock clock;
  RETURN_IF_ERROR(folder.remove("summary.json"));  // it tells how the session before ended
  RETURN_IF_ERROR(write_nodes(folder, disk, "running"));
  runtime::Node node(prepared.plan, actors::make_actor_factory(parts), options, clock, log);
  const runtime::NodeEnd end = signals.run(node);

  LocalRunResult result;
  result.error = end.error;
  result.signal = signals.stopped_by();
  const actors::RunOutcome& outcome = *parts.outcome;
  const std::size_t slots = prepared.options.schedule.size();
  tell_dropped(node.link_stats(), folder, log);
  if (end.error) {
    tell_unsaved(outcome, slots, folder, log);
    const auto traced = write_trace(folder, disk, node.traces());
    if (!traced.ok()) log.warning(traced.error().message);
  }
  if (outcome.validation) result.table = outcome.validation->table;
  result.summary_json = summary_json(outcome, slots, result.error);
  const auto written = write_end(result.summary_json, folder, disk);
  if (!end.abandoned.empty()) abandon(end, log);
  // What cannot be written does not hide how the run itself ended.
  if (!written.ok() && result.error) log.error(written.error().message);
  if (!written.ok() && !result.error) result.error = written.error();
  return result;
}

Result<LocalBounds> local_bounds(const config::LoadedTopology& loaded) {
  const config::Topology& topology = loaded.topology;
  const auto backend = make_backend(topology.model.kernels);
  const auto& options = topology.train.options;
  ASSIGN_OR_RETURN(const auto gan,
                   model::Gan::compile(topology.model.gan, *backend, options.micro_batch));
  LocalBounds bounds;
  ASSIGN_OR_RETURN(bounds.plan, make_plan(topology, loaded.origins, *gan));
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
  bounds.replicas = topology.replica.count;
  const std::int64_t fakes_bytes = gan->batch() * gan->discriminator().input_shape().elements() * 4;
  bounds.iteration_bytes = options.micro_batches * (batch_bytes(*gan) + fakes_bytes +
                                                    contribution_elements(topology, *gan) *
                                                        static_cast<std::int64_t>(sizeof(float)));
  return bounds;
}

double usable_memory() {
  const double physical =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return physical;
  return std::min(physical, static_cast<double>(limit.rlim_cur));
}

Result<void> check_memory(const LocalBounds& bounds, double usable_bytes) {
  const auto arena = static_cast<double>(bounds.arena_bytes);
  const auto state = static_cast<double>(bounds.state_bytes);
  const auto iteration = static_cast<double>(bounds.iteration_bytes);
  const double needed = bounds.replicas * (arena + state) + iteration;
  if (needed <= usable_bytes) return {};
  return runtime::Error{
      runtime::ErrorKind::kTopology,
      fmt::format("a run needs {:.1f} GB of memory or more, and {:.1f} GB are here: {:.1f} MB of "
                  "activations and {:.1f} MB of state for each of {} replicas, {:.1f} MB for the "
                  "micro-batches of an iteration; lower train.micro_batch, train.micro_batches, "
                  "actors.replica.count or actors.replica.threads, or make the networks smaller",
                  needed / 1e9, usable_bytes / 1e9, arena / 1e6, state / 1e6, bounds.replicas,
                  iteration / 1e6)};
}

}  // namespace troupe::launch
