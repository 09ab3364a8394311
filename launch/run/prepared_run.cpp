#include "launch/run/prepared_run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "config/cluster_plan.h"
#include "launch/folder/starting_state.h"
#include "launch/machine/this_host.h"
#include "launch/run/run_monitor.h"
#include "runtime/base/clock.h"
#include "runtime/base/utc_time.h"
#include "runtime/node/patience.h"

namespace troupe::launch {

using runtime::Result;

Result<Prepared> prepare(const LocalRunRequest& request, const RunFolder& folder,
                         runtime::Disk& disk, runtime::Log& log) {
  if (request.resume) {
    RETURN_IF_ERROR(
        check_weak_scaling(folder, disk, request.topology, request.members, request.origins));
  }
  ASSIGN_OR_RETURN(TrainingSetup setup,
                   set_up_training(request.topology, size_of_run(request.topology, request.members),
                                   request.data_folder, true, log, request.origins));
  Prepared prepared{std::move(setup), {}, {}, {}, {}, {}};
  const pipeline::TrainingOptions& options = prepared.setup.options;
  const RunIdentity identity{request.topology_hash, prepared.setup.backend->numerics_class(),
                             prepared.setup.identity.fingerprint};
  pipeline::TrainingState state;
  if (request.resume) {
    ASSIGN_OR_RETURN(state,
                     read_newest_state(folder, disk, *prepared.setup.gan, options, identity, log));
    const std::uint64_t step = state.step(options.schedule.size());
    bool validated = false;
    if (request.returns) {
      ASSIGN_OR_RETURN(prepared.told_step, folder.mend_metrics());
    } else {
      ASSIGN_OR_RETURN(const RunFolder::CutMetrics cut, folder.cut_metrics(step));
      if (!cut.problem.empty()) log.warning(cut.problem);
      validated = cut.validated;
    }
    if (step > 0) prepared.saved_step = step;
    if (validated) prepared.validated_step = step;
    prepared.best = read_best(folder, disk, step, log);
  } else {
    state = pipeline::initial_state(*prepared.setup.gan, options, identity.numerics_class,
                                    identity.data_fingerprint);
  }
  if (options.lossy) {
    log.info(
        "actors.reducer.reduction is not exact: the result depends on the number of workers "
        "and their order in the ring, and what rounding left over for later steps is lost when a "
        "run is resumed");
  }
  if (request.resume && !request.returns && state.iteration >= prepared.setup.iterations) {
    log.info(
        fmt::format("already at iteration {} of {}: nothing to train; raise train.epochs or "
                    "train.iterations to go on",
                    state.iteration, prepared.setup.iterations));
  }
  prepared.state = std::make_shared<const pipeline::TrainingState>(std::move(state));
  return prepared;
}

actors::NodeParts make_parts(const LocalRunRequest& request, const RunFolder& folder,
                             runtime::Disk& disk, Prepared& prepared) {
  const config::Topology& topology = request.topology;
  const TrainingSetup& setup = prepared.setup;
  actors::NodeParts parts = computing_parts(prepared.setup, topology, disk, request.members, 0);
  parts.coordinator = coordinator_options(setup, topology, request.members, prepared.state);
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
  const std::uint64_t first_step = prepared.told_step
                                       ? *prepared.told_step + 1
                                       : prepared.state->step(setup.options.schedule.size());
  parts.monitor = monitor_options(request, folder, setup, first_step);
  return parts;
}

void take_place(const HeadHistory& history, const config::FailureSection& failure,
                actors::NodeParts& parts) {
  actors::CoordinatorOptions& coordinator = parts.coordinator;
  coordinator.time_of_day = [] {
    return runtime::utc_text(std::chrono::floor<std::chrono::milliseconds>(runtime::wall_now()));
  };
  coordinator.membership.term = history.term + 1;
  if (history.members.empty()) return;
  const auto numbers = [&](const auto& names) {
    std::set<std::uint32_t> all;
    for (std::uint32_t i = 0; i < coordinator.places.size(); ++i) {
      const auto& node = coordinator.places[i].node;
      if (std::find(names.begin(), names.end(), node) != names.end()) all.insert(i);
    }
    return all;
  };
  coordinator.predecessor = actors::CoordinatorOptions::Predecessor();
  coordinator.predecessor->taken = numbers(history.places);
  coordinator.predecessor->expected = numbers(history.members);
  coordinator.predecessor->untold_step = parts.monitor.first_step;
  coordinator.predecessor->made_all =
      coordinator.state->iteration >= parts.monitor.progress.iterations;
  // As long as a member may take to notice that the head it knew is gone, and the way here.
  const runtime::Patience patience(failure.dead_after);
  coordinator.return_within =
      2 * patience.with_absence(runtime::TimePoint{0}, host_load()) + std::chrono::seconds(1);
  parts.monitor.told_before = true;
}

}  // namespace troupe::launch
