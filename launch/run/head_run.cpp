#include "launch/run/head_run.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/spawn.h"
#include "config/plan.h"
#include "launch/folder/membership_file.h"
#include "launch/folder/metrics_file.h"
#include "launch/folder/nodes_file.h"
#include "launch/folder/run_disk.h"
#include "launch/folder/run_summary.h"
#include "launch/machine/this_host.h"
#include "launch/meeting/doorkeeper.h"
#include "launch/meeting/join_lines.h"
#include "launch/meeting/node_uplink.h"
#include "launch/processes/lost_member.h"
#include "launch/run/enrolment.h"
#include "launch/run/node_run.h"
#include "launch/run/run_page.h"
#include "launch/run/run_pools.h"
#include "launch/run/run_signals.h"
#include "launch/run/saved_states.h"
#include "launch/run/training_setup.h"
#include "runtime/base/host_name.h"
#include "runtime/base/utc_time.h"
#include "runtime/node/node.h"

namespace troupe::launch {
namespace {

using runtime::Result;

// For MonitorOptions::files_are_gone.
std::function<bool()> looks_after(RunDisk& disk) {
  return [&disk, seen = 0]() mutable {
    (void)disk.hold();
    const int made = disk.made_again();
    return std::exchange(seen, made) != made;
  };
}

telemetry::NodeFacts facts_of(const actors::NodeChange& change) {
  telemetry::NodeFacts facts = change;
  if (facts.state == "joining") facts.state = kRunning;
  facts.address.clear();
  return facts;
}

telemetry::RunFacts facts_of(const HeadRunRequest& request, const TrainingSetup& setup) {
  telemetry::RunFacts facts;
  facts.name = setup.topology.name;
  facts.model = setup.topology.model_name();
  facts.version = request.version;
  for (const auto slot : setup.options.schedule) facts.schedule.push_back(model::slot_name(slot));
  facts.iterations = setup.iterations;
  facts.iterations_per_epoch = setup.options.iterations_per_epoch;
  facts.micro_batches = setup.options.all_parts();
  facts.micro_batch = setup.options.events_of_part();
  facts.price_per_node_hour = setup.topology.monitor.price_per_node_hour;
  return facts;
}

telemetry::NodeFacts this_node(const HeadRunRequest& request) {
  const bool alone = request.members == 0;
  return {alone ? kLocalNode : config::kHeadNode,
          runtime::host_name(),
          alone ? "all" : "head",
          static_cast<std::uint64_t>(::getpid()),
          "running",
          ""};
}

// The options of the Monitor, but for what it calls. `first_step`: see MonitorOptions.
actors::MonitorOptions monitor_options(const HeadRunRequest& request, const RunFolder& folder,
                                       const TrainingSetup& setup, std::uint64_t first_step) {
  actors::MonitorOptions options;
  options.sinks.metrics_path = folder.file(MetricsFile::kName);
  options.sinks.history = request.history;
  if (setup.topology.monitor.tensorboard) options.sinks.tensorboard_folder = folder.path();
  options.sinks.publish = setup.topology.monitor.publish;
  options.showers_folder = folder.file(RunFolder::kShowers);
  options.facts = facts_of(request, setup);
  options.node = this_node(request);
  const model::GanDescription& gan = setup.topology.model.gan;
  for (const std::size_t i : pipeline::losses_of_steps(gan, setup.options)) {
    const model::LossTerm& loss = options.losses.emplace_back(model::told_losses(gan)[i]);
    options.facts.losses.emplace_back(loss.name(), loss.weight);
  }
  options.schedule = setup.options.schedule;
  options.first_step = first_step;
  options.ordered_states = setup.turns.states;
  options.progress = {request.progress, request.progress_on_terminal,
                      first_step / setup.options.schedule.size(), setup.iterations,
                      setup.options.iterations_per_epoch};
  return options;
}

// Says so, and leaves no folder of a run behind that holds none; that of the data stays.
std::function<void(int)> early_end(const HeadRunRequest& request, const RunFolder& folder,
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
  HeadRun(const HeadRunRequest& request, RunFolder& folder, runtime::Disk& disk, runtime::Log& log)
      : request_(request),
        folder_(folder),
        plain_disk_(disk),
        log_(log),
        disk_(folder, disk, log),
        signals_({.supervised = request.members > 0,
                  .returns = request.returns,
                  .early = early_end(request, folder, log)}),
        page_(request, folder, log),
        nodes_(folder.file(NodesFile::kName), disk) {
    if (!request.members_here.empty()) lost_members_.emplace(kParentLineDescriptor);
  }
  HeadRun(const HeadRun&) = delete;
  HeadRun& operator=(const HeadRun&) = delete;

  // Data, state and the wire, which answers those that come too early.
  Result<void> prepare();
  // From here on the folder holds a run; one that could not begin leaves it free.
  Result<void> begin_folder();
  Result<void> make_node();
  // Returns when the run has ended, and the folder holds what is kept of it.
  HeadRunResult run();

 private:
  Result<void> open_wire();
  Result<void> begin_membership();
  Result<void> find_state();
  void make_parts();
  void put_back(runtime::Disk& plain);
  void succeed(const HeadHistory& history);
  Result<runtime::GateOptions> take_the_head();
  Result<void> open_pools();
  // Members that are of no pool, before any joins by itself.
  bool others_come() const {
    return !request_.others_of.empty() || !request_.members_here.empty() ||
           !setup_->topology.cluster.hosts.empty();
  }
  void tell_members() const;
  void keep_state(const runtime::NodeEnd& end, HeadRunResult& result);
  void write_end(const runtime::NodeEnd& end, HeadRunResult& result);
  Result<void> write_summary(const std::string& summary_json);
  void note(const Result<void>& result) const {
    if (!result.ok()) log_.warning(result.error().message);
  }

  const HeadRunRequest& request_;
  RunFolder& folder_;
  runtime::Disk& plain_disk_;
  runtime::Log& log_;
  RunDisk disk_;
  RunSignals signals_;
  std::optional<LostMembers> lost_members_;  // none: nobody here starts members
  const runtime::SteadyClock clock_;
  RunPage page_;
  NodesFile nodes_;
  std::unique_ptr<runtime::Wire> wire_;  // null: a run without members
  std::optional<MembershipFile> membership_;
  std::optional<HeadRelay> relay_;
  std::optional<RunPools> pools_;  // none: the topology has none
  std::optional<TrainingSetup> setup_;
  StartingPoint begin_;
  std::optional<actors::NodeParts> parts_;
  std::optional<NodeRun> node_;
};

Result<void> HeadRun::open_wire() {
  if (request_.members == 0) return {};
  RETURN_IF_ERROR(check_topology_fits(config::print_topology(request_.loaded)));
  const config::ClusterSection& cluster = request_.loaded.topology.cluster;
  const auto ucx = std::make_shared<runtime::UcxFabric>(clock_);
  RETURN_IF_ERROR(open_fabric(cluster, *ucx, log_));
  ASSIGN_OR_RETURN(wire_, launch::open_wire(request_.listen, {cluster.keys, std::nullopt}, clock_,
                                            log_, nullptr, ucx));
  // Members that reach each other through the relay have not much patience.
  return request_.returns ? begin_membership() : Result<void>{};
}

Result<void> HeadRun::begin_membership() {
  ASSIGN_OR_RETURN(MembershipFile file,
                   MembershipFile::open(folder_.file(MembershipFile::kName), request_.returns));
  membership_.emplace(std::move(file));
  relay_.emplace(request_.listen, membership_->history().relay_tokens, log_);
  return {};
}

Result<void> HeadRun::prepare() {
  // Nobody could stop them once the folder has the new topology.
  RETURN_IF_ERROR(check_nodes_left(folder_.file(PoolJournal::kName), request_.members,
                                   request_.loaded.topology.cluster));
  RETURN_IF_ERROR(open_wire());
  // Members that come back to a head say nothing that a doorkeeper could answer.
  std::optional<Doorkeeper> doorkeeper;
  if (wire_ && !request_.returns) {
    doorkeeper.emplace(*wire_, clock_, "the head is opening its data");
  }
  RETURN_IF_ERROR(find_state());
  doorkeeper.reset();
  if (request_.resume && request_.history) {
    MetricsFile(folder_.file(MetricsFile::kName), disk_).recall(*request_.history);
  }
  make_parts();
  return {};
}

// The scaling is checked before the setup, which may take minutes to make or read the data.
Result<void> HeadRun::find_state() {
  if (request_.resume) {
    RETURN_IF_ERROR(check_weak_scaling(folder_, disk_, request_.loaded, request_.members));
  }
  ASSIGN_OR_RETURN(setup_, set_up_training(request_.loaded,
                                           size_of_run(request_.loaded.topology, request_.members),
                                           request_.data_folder, true, log_));
  if (!request_.resume) {
    ASSIGN_OR_RETURN(begin_, first_point(*setup_, disk_, log_));
  } else {
    ASSIGN_OR_RETURN(begin_, newest_point(*setup_, folder_, request_.returns, disk_, log_));
  }
  if (!request_.order.empty()) {
    ASSIGN_OR_RETURN(setup_->turns,
                     take_turn_log(request_.order, setup_->options, *begin_.state, disk_, log_));
  }
  if (setup_->options.lossy) {
    log_.info(
        "actors.reducer.reduction is not exact: the result depends on the number of workers "
        "and their order in the ring, and what rounding left over for later steps is lost when a "
        "run is resumed");
  }
  const std::uint64_t iteration = begin_.state->iteration;
  const auto reason = pipeline::reason_to_stop(setup_->options.stop, *begin_.state);
  if (request_.resume && !request_.returns && reason) {
    log_.info(fmt::format("nothing to train: {}; change train.stop to go on", *reason));
  } else if (request_.resume && !request_.returns && iteration >= setup_->iterations) {
    log_.info(
        fmt::format("already at iteration {} of {}: nothing to train; raise train.epochs or "
                    "train.iterations to go on",
                    iteration, setup_->iterations));
  }
  return {};
}

void HeadRun::make_parts() {
  const config::Topology& topology = setup_->topology;
  parts_.emplace(computing_parts(*setup_, disk_, 0));
  if (setup_->size.members > 0) parts_->loader.most_ahead = 0;  // it feeds other nodes
  parts_->coordinator = coordinator_options(*setup_, begin_.state);
  parts_->coordinator.ended = [this] {
    std::vector<actors::MissingMember> missing;
    if (!lost_members_) return missing;
    for (const LostMember& lost : lost_members_->take()) {
      missing.push_back({lost.name, lost.error()});
    }
    return missing;
  };
  parts_->checkpointer = {folder_.checkpoints(), topology.checkpointer.keep,
                          setup_->topology_text, setup_->topology_hash,
                          topology.model_name(), setup_->origin,
                          begin_.saved_step,     begin_.best};
  parts_->validator = {topology.validator.events, pipeline::image_units(topology.data.dataset),
                       begin_.validated_step, topology.validator};
  // A head that returns tells none of the steps again that metrics.jsonl has.
  const std::uint64_t first_step = begin_.told_step
                                       ? *begin_.told_step + 1
                                       : begin_.state->step(setup_->options.schedule.size());
  parts_->monitor = monitor_options(request_, folder_, *setup_, first_step);
  parts_->monitor.on_node = [this](const actors::NodeChange& change) {
    note(nodes_.set(facts_of(change)));
  };
  parts_->monitor.files_are_gone = looks_after(disk_);
}

// Puts what a run has in its folder into one that was made again; see RunDisk.
void HeadRun::put_back(runtime::Disk& plain) {
  note(folder_.write_topology(setup_->topology_text, plain));
  note(nodes_.write_again());
  if (membership_) note(membership_->put_back());
  if (pools_) note(pools_->put_back());
  note(page_.put_back(folder_));
  if (!node_) return;
  // The folder has lost its checkpoints, so the run makes one.
  node_->node().send_control("coordinator", runtime::Message::of(actors::CheckpointRequest{}));
}

Result<void> HeadRun::begin_folder() {
  signals_.begin();
  RETURN_IF_ERROR(folder_.write_topology(setup_->topology_text, disk_));
  RETURN_IF_ERROR(folder_.remove(RunFolder::kSummary));  // it tells how the session before ended
  if (request_.returns) nodes_.load();
  RETURN_IF_ERROR(nodes_.set(parts_->monitor.node));
  disk_.on_made_again([this](runtime::Disk& plain) { put_back(plain); });
  return {};
}

// Tells the coordinator and the monitor what they need to know of the heads before this one.
void HeadRun::succeed(const HeadHistory& history) {
  actors::CoordinatorOptions& coordinator = parts_->coordinator;
  coordinator.membership.term = history.term + 1;
  if (history.members.empty()) return;
  const auto numbers = [&](const auto& names) {
    std::set<std::uint32_t> all;
    for (const std::string& name : names) {
      if (const auto number = config::member_number(name, setup_->size.slots)) all.insert(*number);
    }
    return all;
  };
  coordinator.predecessor = actors::CoordinatorOptions::Predecessor{
      numbers(history.slots), numbers(history.members), parts_->monitor.first_step,
      begin_.state->iteration >= setup_->iterations ||
          pipeline::reason_to_stop(setup_->options.stop, *begin_.state)};
  coordinator.predecessor->processes = history.processes();
  coordinator.predecessor->renewed = history.renewed();
  coordinator.return_within =
      return_within(setup_->topology.cluster.failure, history.members.size(), host_load());
  parts_->monitor.told_before = true;
}

// Makes this process the head of its members.
Result<runtime::GateOptions> HeadRun::take_the_head() {
  if (!membership_) RETURN_IF_ERROR(begin_membership());
  succeed(membership_->history());
  actors::CoordinatorOptions& coordinator = parts_->coordinator;
  coordinator.time_of_day = [] {
    return runtime::utc_text(std::chrono::floor<std::chrono::milliseconds>(runtime::wall_now()));
  };
  coordinator.on_view = [this](const actors::RunOutcome::ViewChange& change) {
    const bool first = !parts_->coordinator.predecessor && change.view.id.number == 1;
    note(membership_->add_view(change, first));
  };
  MemberInvitation invitation = invitation_to(*setup_, request_.data_folder);
  RETURN_IF_ERROR(check_order_fits(invitation.topology, invitation.order));
  const std::uint32_t term = coordinator.membership.term;
  RunSignals* const replaced = term <= setup_->size.restart ? &signals_ : nullptr;
  runtime::GateOptions gate =
      gate_options(config::kHeadNode, setup_->topology.cluster.failure, terms_of(*setup_));
  gate.predecessors = membership_->history().incarnations;
  gate.called = membership_->history().called();
  gate.keeper = std::make_shared<HeadKeeper>(
      std::move(invitation), setup_->size.slots > setup_->size.reused_from(), request_.members_here,
      *membership_, *relay_, replaced, clock_, log_);
  // In the file before any member meets this head, as the next one has to know whom members met.
  RETURN_IF_ERROR(membership_->add_head(term, gate.incarnation));
  return gate;
}

Result<void> HeadRun::open_pools() {
  const config::ClusterSection& cluster = setup_->topology.cluster;
  if (cluster.pools.empty()) return {};
  JoinPlan plan;
  plan.folder = std::filesystem::absolute(folder_.file("pools")).string();
  plan.address =
      addresses_to_dial(request_.listen, wire_->address(), cluster.hosts, interface_addresses())
          .front();
  if (cluster.keys) {
    ASSIGN_OR_RETURN(const KeyFolder keys, read_key_folder(*cluster.keys));
    plan.address = fmt::format("{}#{}", plan.address, keys.own.public_key);
  }
  ASSIGN_OR_RETURN(RunPools opened,
                   RunPools::open(folder_.file(PoolJournal::kName), std::move(plan), cluster));
  pools_.emplace(std::move(opened));
  parts_->provisioner = pools_->options(*setup_, begin_.state->iteration, *membership_,
                                        request_.returns, plain_disk_);
  parts_->provisioner.treasurer.others_come = others_come();
  parts_->coordinator.has_pools = true;
  return {};
}

void HeadRun::tell_members() const {
  const config::ClusterSection& cluster = setup_->topology.cluster;
  if (!request_.others_of.empty()) {
    log_.info(fmt::format("waiting for the other processes of {}", request_.others_of));
  } else if (pools_ && !others_come()) {
    log_.info("waiting for the first node of cluster.pools");
  } else {
    if (const std::string ring = ring_text(*setup_); !ring.empty()) log_.info(ring);
    launch::tell_members(cluster, request_.members, request_.members_here, request_.listen, *wire_,
                         log_);
  }
}

Result<void> HeadRun::make_node() {
  runtime::NodeOptions options;
  options.shutdown_deadline = request_.shutdown_deadline;
  runtime::GateOptions gate;
  if (wire_) {
    ASSIGN_OR_RETURN(gate, take_the_head());
    RETURN_IF_ERROR(open_pools());
    tell_members();
  }
  node_.emplace(*setup_, *parts_, options, std::move(gate), wire_.get(), clock_, log_);
  return {};
}

// Where --resume goes on: the last state is in the run's folder, or in another one. A node that was
// abandoned may hang in the disk, which is then not asked whether the file is there.
void HeadRun::keep_state(const runtime::NodeEnd& end, HeadRunResult& result) {
  const actors::RunOutcome& outcome = *parts_->outcome;
  const bool hangs = !end.abandoned.empty();
  const bool is_saved =
      outcome.saved && (hangs || outcome.state == nullptr ||
                        keep_last_state(*setup_, *outcome.state, folder_, disk_).ok());
  result.resume_from = folder_.path();
  if (is_saved || (!end.error && outcome.state == nullptr)) return;
  result.resume_from = save_elsewhere(*setup_, outcome.state, folder_, hangs, plain_disk_, log_);
}

HeadRunResult HeadRun::run() {
  page_.look_into(node_->node());
  const runtime::NodeEnd end = signals_.run(node_->node());
  page_.leave();
  HeadRunResult result;
  result.error = end.error;
  result.signal = signals_.stopped_by();
  tell_dropped(node_->node().link_stats(), folder_.file(MetricsFile::kName), log_);
  keep_state(end, result);
  if (end.error || request_.trace) {
    const char* const name = wire_ ? "trace/head.json" : "trace/local.json";
    node_->leave_trace(folder_.file(name), disk_);
  }
  if (parts_->outcome->validation) result.table = parts_->outcome->validation->table;
  write_end(end, result);
  return result;
}

Result<void> HeadRun::write_summary(const std::string& summary_json) {
  const std::string summary = summary_json + "\n";
  const auto written =
      disk_.replace(folder_.file(RunFolder::kSummary), std::as_bytes(std::span{summary}));
  const auto ended = nodes_.end_all();
  return written.ok() ? ended : written;
}

void HeadRun::write_end(const runtime::NodeEnd& end, HeadRunResult& result) {
  const HeadHistory history = membership_ ? membership_->history() : HeadHistory{};
  std::optional<std::vector<std::string>> names;
  if (pools_) {
    const auto left = pools_->nodes_left();
    result.nodes_left = left_text(left, folder_.path());
    names.emplace();
    for (const actors::PoolNode& node : left) names->push_back(node.name);
  }
  const auto summary = [&] {
    return summary_json(*parts_->outcome, history, setup_->options.schedule.size(),
                        node_->node().peer_stats(), names, result.error, result.exit_code());
  };
  result.summary_json = summary();
  const auto written = write_summary(result.summary_json);
  if (!end.abandoned.empty()) {
    page_.tell_end(result);
    if (request_.last_words) request_.last_words(result.summary_json);
    if (!result.nodes_left.empty()) log_.error(result.nodes_left);
    abandon(end, log_);  // ends this process, so all others are told before
  }
  // A summary that cannot be written does not hide how the run itself ended.
  if (!written.ok() && result.error) log_.error(written.error().message);
  if (!written.ok() && !result.error) {
    result.error = written.error();
    result.summary_json = summary();
  }
  page_.tell_end(result);
}

}  // namespace

Result<HeadRunResult> run_locally(const HeadRunRequest& request, RunFolder& folder,
                                  runtime::Disk& disk, runtime::Log& log) {
  if (!request.returns) RETURN_IF_ERROR(folder.remove(MembershipFile::kName));
  HeadRun head(request, folder, disk, log);
  RETURN_IF_ERROR(head.prepare());
  RETURN_IF_ERROR(head.begin_folder());
  RETURN_IF_ERROR(head.make_node());
  return head.run();
}

}  // namespace troupe::launch
