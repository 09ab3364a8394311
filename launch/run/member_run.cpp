#include "launch/run/member_run.h"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "actors/spawn.h"
#include "config/plan.h"
#include "config/topology_file.h"
#include "launch/meeting/member_address.h"
#include "launch/meeting/relayed_member.h"
#include "launch/run/enrolment.h"
#include "launch/run/node_run.h"
#include "launch/run/run_signals.h"
#include "launch/run/saved_states.h"
#include "launch/run/training_setup.h"
#include "runtime/base/disk.h"
#include "runtime/base/host_name.h"
#include "runtime/node/node.h"
#include "runtime/transport/enrol.h"

namespace troupe::launch {
namespace {

using runtime::Result;

// Whether there is a way to the head by now.
constexpr auto kLookAgain = std::chrono::milliseconds(200);

// The keeper outlives the wire.
Result<std::unique_ptr<runtime::Wire>> open_member_wire(const MemberRequest& request,
                                                        const MemberKeeper& keeper,
                                                        const runtime::Clock& clock,
                                                        const runtime::Log& log) {
  const bool has_keys = request.credentials.token || request.credentials.key_folder;
  RETURN_IF_ERROR(check_credentials(request.address, request.credentials));
  const auto find = [&] { return listen_address(request.address, request.listen, has_keys); };
  bool told = false;
  const auto pause = [&](const runtime::Error& why) {
    if (!std::exchange(told, true)) log.info(why.message + " Waiting for a way.");
    std::this_thread::sleep_for(kLookAgain);
  };
  ASSIGN_OR_RETURN(const std::string listen,
                   await_listen_address(find, request.within, clock, pause));
  return open_wire(listen, request.credentials, clock, log, [&keeper] { return keeper.allowed(); });
}

runtime::EnrolOptions enrol_options(const MemberRequest& request, RunSignals& signals,
                                    const runtime::Log& log) {
  runtime::EnrolOptions options;
  options.address = request.address;
  options.request.node = request.node;
  options.request.host = runtime::host_name();
  options.request.pid = static_cast<std::uint64_t>(::getpid());
  options.within = request.within;
  options.for_a_slot = request.for_a_slot;
  // A supervisor is the head's, too, and tells people what it does.
  if (!request.supervised) {
    options.waits = [&](const std::string& why) {
      const std::chrono::duration<double> most = request.for_a_slot;
      log.info(fmt::format("{}; asking again, for {:.0f} s at most (--wait)", why, most.count()));
    };
  }
  options.cancelled = [&signals] { return signals.is_leaving(); };
  return options;
}

std::string data_folder_of(const MemberRequest& request, const MemberInvitation& invitation) {
  if (!request.data_folder.empty()) return request.data_folder;
  return invitation.host == runtime::host_name() ? invitation.data_folder : "runs/data";
}

// Saves the state of a member that has lost its head for good. Returns, for people, what became of
// it.
std::string save_orphan(const std::string& node, const TrainingSetup& setup,
                        const pipeline::TrainingState& state, runtime::Disk& disk) {
  const std::string folder = orphan_folder(node);
  const std::string what =
      fmt::format("its state after {} steps", state.step(setup.options.schedule.size()));
  const auto written = write_orphan(setup, state, folder, disk);
  if (!written.ok()) return fmt::format("{} was not saved: {}", what, written.error().message);
  return fmt::format(
      "{} is saved, and one member's is enough to go on with: troupe run --resume {}", what,
      folder);
}

// A member of a run. A notice that this machine goes may come at any time, and costs the run
// nothing before there is a node, which is declared last, since it is destroyed before what it
// uses.
class MemberRun {
 public:
  MemberRun(const MemberRequest& request, RunSignals& signals, const runtime::Clock& clock,
            runtime::Log& log)
      : request_(request), signals_(signals), clock_(clock), log_(log) {}

  // The slot in the run, the wire to it, and what there is to compute with.
  Result<void> prepare();
  void make_node();
  MemberResult run();

 private:
  Result<void> go_through_relay();
  Result<void> set_up();

  const MemberRequest& request_;
  RunSignals& signals_;
  const runtime::Clock& clock_;
  runtime::Log& log_;
  runtime::FileDisk disk_;
  const std::shared_ptr<MemberKeeper> keeper_ = std::make_shared<MemberKeeper>();
  std::unique_ptr<runtime::Wire> wire_;
  std::optional<RelayedMember> relayed_;  // whose wire is used instead
  Slot slot_;
  std::optional<TrainingSetup> setup_;
  std::optional<actors::NodeParts> parts_;
  std::optional<NodeRun> node_;
};

Result<void> MemberRun::prepare() {
  ASSIGN_OR_RETURN(wire_, open_member_wire(request_, *keeper_, clock_, log_));
  ASSIGN_OR_RETURN(slot_, ask_head(enrol_options(request_, signals_, log_), *wire_, clock_));
  if (request_.listen == kNoListener) RETURN_IF_ERROR(go_through_relay());
  return set_up();
}

Result<void> MemberRun::go_through_relay() {
  ASSIGN_OR_RETURN(
      std::optional<RelayedMember> opened,
      open_relayed_member(request_.address, slot_.member, slot_.invitation, request_.credentials,
                          clock_, log_, [this] { return keeper_->allowed(); }));
  if (opened) relayed_.emplace(std::move(*opened));
  return {};
}

Result<void> MemberRun::set_up() {
  const MemberInvitation& invitation = slot_.invitation;
  ASSIGN_OR_RETURN(const config::LoadedTopology loaded,
                   config::parse_topology(invitation.topology, "the head's topology", "."));
  const RunSize size{invitation.members, invitation.slots, 0};
  if (request_.remote_data) {
    log_.info(
        fmt::format("without data of its own: the head sends the micro-batches, of the data {}",
                    invitation.data.fingerprint.text()));
    ASSIGN_OR_RETURN(setup_, set_up_training(loaded, size, invitation.data));
  } else {
    ASSIGN_OR_RETURN(
        setup_, set_up_training(loaded, size, data_folder_of(request_, invitation), false, log_));
  }
  setup_->topology_text = invitation.topology;
  return {};
}

void MemberRun::make_node() {
  parts_.emplace(computing_parts(*setup_, disk_, slot_.member));
  parts_->member.replica = actors::replica_name(parts_->reducer.first_replica);
  runtime::NodeOptions options;
  options.shutdown_deadline = request_.shutdown_deadline;
  if (!setup_->data) options.left_out = {config::loader_name(slot_.member)};
  const config::FailureSection& failure = setup_->topology.cluster.failure;
  runtime::GateOptions gate = gate_options(slot_.node, failure, terms_of(*setup_));
  gate.first_address = request_.address;
  gate.first_returns_within = failure.orphan_after;
  gate.keeper = keeper_;
  runtime::Wire& wire = relayed_ ? *relayed_->wire : *wire_;
  node_.emplace(*setup_, *parts_, std::move(options), std::move(gate), &wire, clock_, log_);
}

MemberResult MemberRun::run() {
  runtime::NodeEnd end = signals_.run(node_->node());
  if (const auto& state = parts_->member.outcome->orphan_state; state != nullptr && end.error) {
    end.error->message += "; " + save_orphan(slot_.node, *setup_, *state, disk_);
  }
  if (!request_.trace.empty()) node_->leave_trace(request_.trace, disk_);
  if (!end.abandoned.empty()) abandon(end, log_);
  return MemberResult{slot_.node, end.error, signals_.stopped_by(), {}};
}

Result<MemberResult> join_run(const MemberRequest& request, RunSignals& signals,
                              const runtime::Clock& clock, runtime::Log& log) {
  MemberRun member(request, signals, clock, log);
  RETURN_IF_ERROR(member.prepare());
  if (signals.is_leaving()) return MemberResult{};
  member.make_node();
  return member.run();
}

}  // namespace

Result<MemberResult> run_member(const MemberRequest& request, runtime::Log& log) {
  RunSignalsOptions options{.supervised = request.supervised};
  // The supervisor tells of the end of one that it has started.
  if (!request.supervised) {
    options.early = [&log](int number) {
      log.error(fmt::format("ended by signal {} before it had joined", number));
    };
  }
  RunSignals signals(options);
  const runtime::SteadyClock clock;
  PreemptionNotice notice(request.preemption, log);
  MemberResult away;
  if (const auto why = notice.look()) {
    log.info(*why + "; it does not join");
    away.preempted = *why;
    return away;
  }
  std::optional<PreemptionWatch> watch;
  if (request.preemption.watches()) {
    watch.emplace(notice, [&](const std::string& why) {
      log.warning(why + "; it leaves the run");
      away.preempted = why;
      signals.leave();
    });
  }
  Result<MemberResult> result = join_run(request, signals, clock, log);
  watch.reset();
  if (away.preempted.empty()) return result;
  // Whatever kept it from becoming a member matters to nobody any more.
  if (!result.ok()) return away;
  result->preempted = away.preempted;
  return result;
}

}  // namespace troupe::launch
