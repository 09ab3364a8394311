#include "launch/run/local_run.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/spawn.h"
#include "config/cluster_plan.h"
#include "launch/folder/membership_file.h"
#include "launch/folder/nodes_file.h"
#include "launch/folder/run_disk.h"
#include "launch/folder/run_summary.h"
#include "launch/machine/node_sampler.h"
#include "launch/meeting/doorkeeper.h"
#include "launch/meeting/head_relay.h"
#include "launch/meeting/node_uplink.h"
#include "launch/processes/lost_member.h"
#include "launch/run/abandon.h"
#include "launch/run/head.h"
#include "launch/run/orphan_folder.h"
#include "launch/run/prepared_run.h"
#include "launch/run/run_monitor.h"
#include "launch/run/run_page.h"
#include "launch/run/run_signals.h"
#include "launch/run/run_trace.h"
#include "launch/run/training_setup.h"
#include "pipeline/checkpoint/checkpoint_folder.h"
#include "runtime/node/node.h"

namespace troupe::launch {
namespace {

using runtime::Result;

constexpr int kSchedulerThreads = 1;

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
  const std::string name = orphan_folder(request.topology.name + "-saved",
                                         std::chrono::system_clock::to_time_t(runtime::wall_now()));
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

Result<void> write_summary(const std::string& summary_json, const RunFolder& folder,
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

// A run that this process is the head of, or makes alone. The node is declared last, since it is
// destroyed before what it uses.
class HeadRun {
 public:
  HeadRun(const LocalRunRequest& request, RunFolder& folder, runtime::Disk& disk, runtime::Log& log)
      : request_(request),
        folder_(folder),
        plain_disk_(disk),
        log_(log),
        disk_(folder, disk, log),
        signals_({.supervised = request.members > 0,
                  .returns = request.returns,
                  .early = early_end(request, folder, log)}),
        lost_members_(!request.members_here.empty()),
        page_(request, folder, log) {}
  HeadRun(const HeadRun&) = delete;
  HeadRun& operator=(const HeadRun&) = delete;

  // Data, state and the wire, which answers those that come too early.
  Result<void> prepare();
  // From here on the folder holds a run; one that could not begin leaves it free.
  Result<void> begin_folder();
  Result<void> make_node();
  // Returns when the run has ended, and the folder holds what is kept of it.
  LocalRunResult run();

 private:
  Result<void> begin_membership();
  Result<runtime::GateOptions> take_the_head();
  void keep_state(const runtime::NodeEnd& end, LocalRunResult& result);
  void write_end(const runtime::NodeEnd& end, LocalRunResult& result);

  const LocalRunRequest& request_;
  RunFolder& folder_;
  runtime::Disk& plain_disk_;
  runtime::Log& log_;
  RunDisk disk_;
  RunSignals signals_;
  LostMembers lost_members_;
  const runtime::SteadyClock clock_;
  RunPage page_;
  std::unique_ptr<runtime::Wire> wire_;  // null: a run without members
  std::optional<MembershipFile> membership_;
  std::optional<HeadRelay> relay_;
  std::optional<Prepared> prepared_;
  std::optional<actors::NodeParts> parts_;
  std::optional<NodesFile> nodes_;
  std::optional<runtime::WireTypes> types_;
  std::optional<runtime::Node> node_;
};

Result<void> HeadRun::begin_membership() {
  ASSIGN_OR_RETURN(MembershipFile file,
                   MembershipFile::open(folder_.file(MembershipFile::kName), request_.returns));
  membership_.emplace(std::move(file));
  relay_.emplace(request_.listen, membership_->history().relay_tokens, log_);
  return {};
}

Result<void> HeadRun::prepare() {
  ASSIGN_OR_RETURN(wire_, open_head_wire(request_, clock_, log_));
  // Members that reach each other through the relay have not much patience.
  if (wire_ && request_.returns) RETURN_IF_ERROR(begin_membership());
  // Members that come back to a head say nothing that a doorkeeper could answer.
  std::optional<Doorkeeper> doorkeeper;
  if (wire_ && !request_.returns)
    doorkeeper.emplace(*wire_, clock_, "the head is opening its data");
  ASSIGN_OR_RETURN(prepared_, launch::prepare(request_, folder_, disk_, log_));
  doorkeeper.reset();
  if (request_.resume && request_.history) recall_metrics(folder_, *request_.history);
  parts_.emplace(make_parts(request_, folder_, disk_, *prepared_));
  parts_->coordinator.ended = [this] {
    std::vector<actors::MissingMember> missing;
    for (const LostMember& lost : lost_members_.take()) {
      missing.push_back({lost.name, lost.error()});
    }
    return missing;
  };
  return {};
}

Result<void> HeadRun::begin_folder() {
  signals_.begin();
  RETURN_IF_ERROR(disk_.replace(folder_.file("topology.yaml"),
                                std::as_bytes(std::span{request_.effective_topology})));
  RETURN_IF_ERROR(folder_.remove("summary.json"));  // it tells how the session before ended
  nodes_.emplace(folder_.file("nodes.json"), plain_disk_);
  if (request_.returns) nodes_->load();
  const telemetry::NodeFacts& self = parts_->monitor.node;
  RETURN_IF_ERROR(nodes_->set({self.name, self.host, ::getpid(), self.role, NodeState::kRunning}));
  parts_->monitor.on_node = [this](const actors::NodeChange& change) {
    const auto written = nodes_->set(entry_of(change));
    if (!written.ok()) log_.warning(written.error().message);
  };
  disk_.on_made_again([this](runtime::Disk& plain) {
    put_back(request_, folder_, plain, *nodes_, membership_, page_, log_);
    if (node_) {
      node_->send_control("coordinator", runtime::Message::of(actors::CheckpointRequest{}));
    }
  });
  parts_->monitor.files_are_gone = looks_after(disk_);
  return {};
}

// Makes this process the head of its members.
Result<runtime::GateOptions> HeadRun::take_the_head() {
  if (!membership_) RETURN_IF_ERROR(begin_membership());
  take_place(membership_->history(), request_.topology.cluster.failure, *parts_);
  parts_->coordinator.on_view = [this](const actors::RunOutcome::ViewChange& change) {
    const bool first = !parts_->coordinator.predecessor && change.view.id.number == 1;
    const auto written = membership_->add_view(change, first);
    if (!written.ok()) log_.warning(written.error().message);
  };
  runtime::GateOptions gate =
      head_gate(request_, prepared_->setup, clock_, *membership_, *relay_, log_);
  const std::uint32_t term = parts_->coordinator.membership.term;
  const std::uint32_t restart = size_of_run(request_.topology, request_.members).restart;
  if (term <= restart) gate.given_up_by = make_room_for_next(signals_, log_);
  RETURN_IF_ERROR(membership_->add_head(term, gate.incarnation));
  return gate;
}

Result<void> HeadRun::make_node() {
  runtime::NodeOptions options;
  options.scheduler_threads = kSchedulerThreads;
  options.shutdown_deadline = request_.shutdown_deadline;
  options.stuck_after = request_.topology.cluster.failure.stuck_after;
  runtime::GateOptions gate;
  if (wire_) {
    ASSIGN_OR_RETURN(gate, take_the_head());
  }
  // The Monitor asks while the node runs, and not before.
  parts_->monitor.sample = [this] { return sample_node(parts_->monitor.node.name, *node_); };
  parts_->monitor.trace = [this] { return node_->traces(); };
  parts_->monitor.waits = [this] { return node_->wait_for_graph(); };
  const auto factory = actors::make_actor_factory(*parts_);
  const TrainingSetup& setup = prepared_->setup;
  if (!wire_) {
    node_.emplace(setup.plan, factory, options, clock_, log_);
    return {};
  }
  types_ = wire_types(*setup.gan, setup.options);
  tell_members(request_, *wire_, log_);
  node_.emplace(setup.plan, factory, options, clock_, log_,
                runtime::Uplink{std::move(gate), *wire_, *types_});
  return {};
}

// Where --resume goes on: the last state is in the run's folder, or in another one.
void HeadRun::keep_state(const runtime::NodeEnd& end, LocalRunResult& result) {
  const actors::RunOutcome& outcome = *parts_->outcome;
  const bool hangs = !end.abandoned.empty();
  const bool is_saved =
      outcome.saved && (hangs || outcome.state == nullptr ||
                        keep_last_state(request_, *prepared_, *outcome.state, folder_, disk_).ok());
  result.resume_from = folder_.path();
  if (is_saved || (!end.error && outcome.state == nullptr)) return;
  result.resume_from =
      save_elsewhere(request_, *prepared_, outcome, folder_, hangs, plain_disk_, log_);
}

LocalRunResult HeadRun::run() {
  page_.look_into(*node_);
  const runtime::NodeEnd end = signals_.run(*node_);
  page_.leave();
  LocalRunResult result;
  result.error = end.error;
  result.signal = signals_.stopped_by();
  tell_dropped(node_->link_stats(), folder_, log_);
  keep_state(end, result);
  if (end.error || request_.trace) {
    const char* const name = request_.members == 0 ? "trace/local.json" : "trace/head.json";
    const auto traced = write_trace(folder_.file(name), disk_, node_->traces());
    if (!traced.ok()) log_.warning(traced.error().message);
  }
  if (parts_->outcome->validation) result.table = parts_->outcome->validation->table;
  write_end(end, result);
  return result;
}

void HeadRun::write_end(const runtime::NodeEnd& end, LocalRunResult& result) {
  const HeadHistory history = membership_ ? membership_->history() : HeadHistory{};
  const auto summary = [&] {
    return summary_json(*parts_->outcome, history, prepared_->setup.options.schedule.size(),
                        node_->peer_stats(), result.error, result.exit_code());
  };
  result.summary_json = summary();
  const auto written = write_summary(result.summary_json, folder_, disk_, *nodes_);
  if (!end.abandoned.empty()) {
    page_.tell_end(result);
    if (request_.last_words) request_.last_words(result.summary_json);
    abandon(end, log_);
  }
  // What cannot be written does not hide how the run itself ended.
  if (!written.ok() && result.error) log_.error(written.error().message);
  if (!written.ok() && !result.error) {
    result.error = written.error();
    result.summary_json = summary();
  }
  page_.tell_end(result);
}

}  // namespace

Result<LocalRunResult> run_locally(const LocalRunRequest& request, RunFolder& folder,
                                   runtime::Disk& disk, runtime::Log& log) {
  // Until there is one of this session, a head that is lost is not replaced.
  if (!request.returns) RETURN_IF_ERROR(folder.remove(MembershipFile::kName));
  HeadRun head(request, folder, disk, log);
  RETURN_IF_ERROR(head.prepare());
  RETURN_IF_ERROR(head.begin_folder());
  RETURN_IF_ERROR(head.make_node());
  return head.run();
}

}  // namespace troupe::launch
