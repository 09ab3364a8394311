#include "launch/local_run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/spawn.h"
#include "config/cluster_plan.h"
#include "launch/abandon.h"
#include "launch/doorkeeper.h"
#include "launch/head.h"
#include "launch/head_relay.h"
#include "launch/lost_member.h"
#include "launch/membership_file.h"
#include "launch/node_sampler.h"
#include "launch/node_uplink.h"
#include "launch/nodes_file.h"
#include "launch/orphan_folder.h"
#include "launch/run_disk.h"
#include "launch/run_monitor.h"
#include "launch/run_page.h"
#include "launch/run_signals.h"
#include "launch/run_summary.h"
#include "launch/run_trace.h"
#include "launch/starting_state.h"
#include "launch/this_host.h"
#include "launch/training_setup.h"
#include "launch/utc_time.h"
#include "pipeline/checkpoint_folder.h"
#include "runtime/node.h"
#include "runtime/transport/patience.h"

namespace troupe::launch {
namespace {

using runtime::Result;

constexpr int kSchedulerThreads = 1;

// What the run begins with, prepared before any actor exists.
struct Prepared {
  TrainingSetup setup;
  actors::StatePointer state;
  // Of a run that goes on: what is known of it up to its state.
  std::optional<std::uint64_t> saved_step, validated_step;
  std::optional<std::uint64_t> told_step;  // the newest of metrics.jsonl, of one that returns
  std::optional<pipeline::BestCheckpoint> best;
};

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

// What the coordinator and the monitor need to know of the heads before this one, and leave for the
// one after it.
void take_place(const HeadHistory& history, const config::FailureSection& failure,
                actors::NodeParts& parts) {
  actors::CoordinatorOptions& coordinator = parts.coordinator;
  coordinator.time_of_day = [] { return utc_text(std::chrono::system_clock::now()); };
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

// Besides the steps, which the Monitor counts, and samples, of which no file lacks a line.
void tell_dropped(const std::vector<runtime::LinkStats>& links, const RunFolder& folder,
                  runtime::Log& log) {
  std::int64_t dropped = 0;
  for (const runtime::LinkStats& link : links) {
    if (link.plan.from.starts_with("replica.") || link.plan.from_port != "metrics") continue;
    dropped += link.dropped;
  }
  if (dropped == 0) return;
  log.warning(
      fmt::format("{} lacks {} lines of checkpoints and validations: they came faster than they "
                  "could be written",
                  folder.file("metrics.jsonl"), dropped));
}

// The last state was saved in the run's folder, and somebody may have removed it since.
Result<void> keep_last_state(const LocalRunRequest& request, const Prepared& prepared,
                             const pipeline::TrainingState& state, const RunFolder& folder,
                             RunDisk& disk) {
  RETURN_IF_ERROR(disk.hold(true));
  const std::size_t slots = prepared.setup.options.schedule.size();
  const std::string file =
      fmt::format("{}/{}", folder.checkpoints(), pipeline::checkpoint_name(state.step(slots)));
  std::error_code unknown;
  if (std::filesystem::exists(file, unknown) || unknown) return {};
  return write_state(folder, request.topology, request.effective_topology, prepared.setup, state,
                     disk);
}

// The last state, which the run's own folder did not take: in a folder of its own. Returns from
// which folder to go on. A disk that `hangs` is not asked again.
std::string save_elsewhere(const LocalRunRequest& request, const Prepared& prepared,
                           const actors::RunOutcome& outcome, const RunFolder& folder, bool hangs,
                           runtime::Disk& disk, runtime::Log& log) {
  const std::string newest =
      fmt::format("--resume {} goes on from the newest checkpoint", folder.path());
  if (outcome.state == nullptr) {
    log.warning("what was trained after the newest checkpoint was not saved; " + newest);
    return folder.path();
  }
  const std::string what = fmt::format("the state after {} steps",
                                       outcome.state->step(prepared.setup.options.schedule.size()));
  const std::string name = orphan_folder(request.topology.name + "-saved", std::time(nullptr));
  // The folder of temporary files is everybody's.
  const std::string last_resort =
      fmt::format("{}/troupe-{}-{}", std::filesystem::temp_directory_path().string(), ::getuid(),
                  std::filesystem::path(name).filename().string());
  std::vector<std::string> places{name, last_resort};
  if (hangs) places.clear();
  std::string why = "the disk does not answer";
  for (const std::string& place : places) {
    const auto written = write_orphan(place, request.topology, request.effective_topology,
                                      prepared.setup, *outcome.state, disk);
    if (written.ok()) {
      log.warning(fmt::format("{} is saved in {}: go on with --resume {}", what, place, place));
      return place;
    }
    why = written.error().message;
  }
  log.warning(fmt::format("{} was not saved ({}); {}", what, why, newest));
  return folder.path();
}

// Into a folder that was made again; see RunDisk.
void put_back(const LocalRunRequest& request, const RunFolder& folder, runtime::Disk& disk,
              NodesFile& nodes, const std::optional<MembershipFile>& membership,
              const RunPage& page, const runtime::Log& log) {
  const auto tell = [&](const Result<void>& result) {
    if (!result.ok()) log.warning(result.error().message);
  };
  tell(disk.replace(folder.file("topology.yaml"),
                    std::as_bytes(std::span{request.effective_topology})));
  tell(nodes.write_again());
  if (membership) tell(membership->put_back());
  tell(page.put_back(folder));
}

// For MonitorOptions::files_are_gone.
std::function<bool()> looks_after(RunDisk& disk) {
  return [&disk, seen = 0]() mutable {
    (void)disk.hold();
    const int made = disk.made_again();
    return std::exchange(seen, made) != made;
  };
}

Result<void> write_end(const std::string& summary_json, const RunFolder& folder,
                       runtime::Disk& disk, NodesFile& nodes) {
  const std::string summary = summary_json + "\n";
  const auto written =
      disk.replace(folder.file("summary.json"), std::as_bytes(std::span<const char>{summary}));
  const auto ended = nodes.end_all();
  return written.ok() ? ended : written;
}

NodeEntry entry_of(const actors::NodeChange& change) {
  NodeEntry entry;
  entry.name = change.node;
  entry.host = change.host;
  entry.pid = static_cast<pid_t>(change.pid);
  entry.role = "member";
  const bool is_here = change.state == "running" || change.state == "joining";
  entry.state = is_here                   ? NodeState::kRunning
                : change.state == "ended" ? NodeState::kEnded
                                          : NodeState::kDead;
  entry.cause = change.cause;
  return entry;
}

// Says so, and leaves no folder of a run behind that holds none. That of the data is for all runs
// beside it.
std::function<void(int)> early_end(const LocalRunRequest& request, const RunFolder& folder,
                                   const runtime::Log& log) {
  return [&request, &folder, &log](int number) {
    const std::string what = fmt::format("ended by signal {} before training {}", number,
                                         request.resume ? "went on" : "began");
    log.error(folder.discard() ? what + "; its folder is removed" : what);
    if (request.last_words) request.last_words(summary_of_failure(what, 128 + number));
  };
}

}  // namespace

Result<LocalRunResult> run_locally(const LocalRunRequest& request, RunFolder& folder,
                                   runtime::Disk& plain_disk, runtime::Log& log) {
  RunDisk disk(folder, plain_disk, log);
  RunSignals signals({.supervised = request.members > 0,
                      .returns = request.returns,
                      .early = early_end(request, folder, log)});
  // Until there is one of this session, a head that is lost is not replaced.
  if (!request.returns) RETURN_IF_ERROR(folder.remove(MembershipFile::kName));
  LostMembers lost_members(!request.members_here.empty());
  const runtime::SteadyClock clock;
  RunPage page(request, folder, log);
  ASSIGN_OR_RETURN(const auto wire, open_head_wire(request, clock, log));
  std::optional<MembershipFile> membership;
  std::optional<HeadRelay> relay;
  const auto begin_membership = [&]() -> Result<void> {
    ASSIGN_OR_RETURN(MembershipFile file,
                     MembershipFile::open(folder.file(MembershipFile::kName), request.returns));
    membership.emplace(std::move(file));
    relay.emplace(request.listen, membership->history().relay_tokens, log);
    return {};
  };
  // Members that reach each other through the relay have not much patience.
  if (wire && request.returns) {
    RETURN_IF_ERROR(begin_membership());
  }
  // Members that come back to a head say nothing that a doorkeeper could answer.
  std::optional<Doorkeeper> doorkeeper;
  if (wire && !request.returns) doorkeeper.emplace(*wire, clock, "the head is opening its data");
  ASSIGN_OR_RETURN(Prepared prepared, prepare(request, folder, disk, log));
  doorkeeper.reset();
  if (request.resume && request.history) recall_metrics(folder, *request.history);
  actors::NodeParts parts = make_parts(request, folder, disk, prepared);
  parts.coordinator.ended = [&] {
    std::vector<actors::MissingMember> missing;
    for (const LostMember& lost : lost_members.take()) missing.push_back({lost.name, lost.error()});
    return missing;
  };
  // From here on the folder holds a run; one that could not begin leaves it free.
  signals.begin();
  RETURN_IF_ERROR(disk.replace(folder.file("topology.yaml"),
                               std::as_bytes(std::span{request.effective_topology})));
  RETURN_IF_ERROR(folder.remove("summary.json"));  // it tells how the session before ended
  NodesFile nodes(folder.file("nodes.json"), plain_disk);
  if (request.returns) nodes.load();
  const telemetry::NodeFacts& self = parts.monitor.node;
  RETURN_IF_ERROR(nodes.set({self.name, self.host, ::getpid(), self.role, NodeState::kRunning}));
  parts.monitor.on_node = [&](const actors::NodeChange& change) {
    const auto written = nodes.set(entry_of(change));
    if (!written.ok()) log.warning(written.error().message);
  };

  std::optional<runtime::Node> node;
  disk.on_made_again([&](runtime::Disk& plain) {
    put_back(request, folder, plain, nodes, membership, page, log);
    if (node) {
      node->send_control("coordinator", runtime::Message::of(actors::CheckpointRequest{}));
    }
  });
  parts.monitor.files_are_gone = looks_after(disk);
  runtime::NodeOptions options;
  options.scheduler_threads = kSchedulerThreads;
  options.shutdown_deadline = request.shutdown_deadline;
  options.stuck_after = request.topology.cluster.failure.stuck_after;
  runtime::GateOptions gate;
  if (wire) {
    if (!membership) {
      RETURN_IF_ERROR(begin_membership());
    }
    take_place(membership->history(), request.topology.cluster.failure, parts);
    parts.coordinator.on_view = [&](const actors::RunOutcome::ViewChange& change) {
      const bool first = !parts.coordinator.predecessor && change.view.id.number == 1;
      const auto written = membership->add_view(actors::view_json(change), first);
      if (!written.ok()) log.warning(written.error().message);
    };
    gate = head_gate(request, prepared.setup, clock, *membership, *relay, log);
    const std::uint32_t term = parts.coordinator.membership.term;
    const std::uint32_t restart = size_of_run(request.topology, request.members).restart;
    if (term <= restart) gate.given_up_by = make_room_for_next(signals, log);
    RETURN_IF_ERROR(membership->add_head(parts.coordinator.membership.term, gate.incarnation));
  }
  // The Monitor asks while the node runs, and not before.
  parts.monitor.sample = [&] { return sample_node(self.name, *node); };
  parts.monitor.trace = [&] { return node->traces(); };
  parts.monitor.waits = [&] { return node->wait_for_graph(); };
  const auto factory = actors::make_actor_factory(parts);
  const runtime::WireTypes types = wire_types(*prepared.setup.gan, prepared.setup.options);
  if (wire) {
    tell_members(request, *wire, log);
    node.emplace(prepared.setup.plan, factory, options, clock, log,
                 runtime::Uplink{std::move(gate), *wire, types});
  } else {
    node.emplace(prepared.setup.plan, factory, options, clock, log);
  }
  page.look_into(*node);
  const runtime::NodeEnd end = signals.run(*node);
  page.leave();

  LocalRunResult result;
  result.error = end.error;
  result.signal = signals.stopped_by();
  const actors::RunOutcome& outcome = *parts.outcome;
  const std::size_t slots = prepared.setup.options.schedule.size();
  tell_dropped(node->link_stats(), folder, log);
  result.resume_from = folder.path();
  const bool hangs = !end.abandoned.empty();
  const bool is_saved =
      outcome.saved && (hangs || outcome.state == nullptr ||
                        keep_last_state(request, prepared, *outcome.state, folder, disk).ok());
  if (!is_saved && (end.error || outcome.state != nullptr)) {
    result.resume_from = save_elsewhere(request, prepared, outcome, folder, hangs, plain_disk, log);
  }
  if (end.error || request.trace) {
    const char* const name = request.members == 0 ? "trace/local.json" : "trace/head.json";
    const auto traced = write_trace(folder.file(name), disk, node->traces());
    if (!traced.ok()) log.warning(traced.error().message);
  }
  if (outcome.validation) result.table = outcome.validation->table;
  const HeadHistory history = membership ? membership->history() : HeadHistory{};
  const auto summary = [&] {
    return summary_json(outcome, history, slots, node->peer_stats(), result.error,
                        result.exit_code());
  };
  result.summary_json = summary();
  const auto written = write_end(result.summary_json, folder, disk, nodes);
  if (!end.abandoned.empty()) {
    page.tell_end(result);
    if (request.last_words) request.last_words(result.summary_json);
    abandon(end, log);
  }
  // What cannot be written does not hide how the run itself ended.
  if (!written.ok() && result.error) log.error(written.error().message);
  if (!written.ok() && !result.error) {
    result.error = written.error();
    result.summary_json = summary();
  }
  page.tell_end(result);
  return result;
}

}  // namespace troupe::launch
