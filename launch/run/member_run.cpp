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
#include "launch/meeting/socket_folder.h"
#include "launch/run/enrolment.h"
#include "launch/run/node_run.h"
#include "launch/run/run_signals.h"
#include "launch/run/saved_states.h"
#include "launch/run/training_setup.h"
#include "runtime/base/disk.h"
#include "runtime/base/host_name.h"
#include "runtime/node/node.h"
#include "runtime/relay/relay_client.h"
#include "runtime/transport/resolve.h"

namespace troupe::launch {
namespace {

using runtime::Result;

// Whether there is a way to the head by now.
constexpr auto kLookAgain = std::chrono::milliseconds(200);

// The keeper outlives the wire.
Result<std::unique_ptr<runtime::Wire>> open_member_wire(
    const MemberRequest& request, const MemberKeeper& keeper,
    const std::shared_ptr<runtime::UcxFabric>& ucx, const runtime::Clock& clock,
    const runtime::Log& log) {
  const bool has_keys = request.credentials.token || request.credentials.key_folder;
  RETURN_IF_ERROR(check_credentials(request.enrol.address, request.credentials));
  const auto find = [&] { return listen_address(request.enrol.address, request.listen, has_keys); };
  bool told = false;
  const auto pause = [&](const runtime::Error& why) {
    if (!std::exchange(told, true)) log.info(why.message + " Waiting for a way.");
    std::this_thread::sleep_for(kLookAgain);
  };
  ASSIGN_OR_RETURN(const std::string listen,
                   await_listen_address(find, request.enrol.within, clock, pause));
  return open_wire(
      listen, request.credentials, clock, log, [&keeper] { return keeper.allowed(); }, ucx);
}

constexpr auto kRelayWithin = std::chrono::seconds(5);

// The wire of a member that nobody can dial, where the head has a relay for it. It listens in a
// folder of its own, which only this user can enter, and at no port.
struct RelayedMember {
  SocketFolder folder;
  std::unique_ptr<runtime::Wire> wire;
};

// `head`: where this process has dialed the head, which has invited it as that member. The clock
// outlives the wire. None: there is no relay, or none that answers within some seconds, as where
// its port is closed; the log says so. Errors are kUsage: a folder, sockets or descriptors that
// cannot be had.
Result<std::optional<RelayedMember>> open_relayed_member(const std::string& head,
                                                         std::uint32_t member,
                                                         const MemberInvitation& invitation,
                                                         const NodeCredentials& credentials,
                                                         const runtime::Clock& clock,
                                                         const runtime::Log& log, LetIn let_in) {
  if (invitation.relay_port == 0) {
    log.info(
        "the head has no relay, through which others that nobody can dial could reach this one");
    return std::optional<RelayedMember>();
  }
  ASSIGN_OR_RETURN(const runtime::Address address, runtime::parse_address(head));
  ASSIGN_OR_RETURN(const runtime::ResolvedAddress place, runtime::resolve(address));
  ASSIGN_OR_RETURN(SocketFolder folder, SocketFolder::make());
  runtime::RelayClientOptions options;
  options.host = place.host;
  options.port = invitation.relay_port;
  options.client = member;
  options.token = invitation.relay_token;
  options.folder = folder.path();
  options.listener = folder.path() + "/member";
  options.log = log;
  ASSIGN_OR_RETURN(auto wire, open_wire("ipc://" + options.listener, credentials, clock, log,
                                        std::move(let_in)));
  ASSIGN_OR_RETURN(auto relay, runtime::RelayClient::open(options));
  if (!relay->attends(kRelayWithin)) {
    log.warning(
        fmt::format("the head's relay at {} port {} does not answer; others that nobody can "
                    "dial do not reach this one; is that port open?",
                    options.host, options.port));
    return std::optional<RelayedMember>();
  }
  auto relayed = std::make_unique<runtime::RelayedWire>(std::move(wire), std::move(relay), member);
  return std::optional<RelayedMember>(RelayedMember{std::move(folder), std::move(relayed)});
}

runtime::EnrolOptions enrol_options(const MemberRequest& request, RunSignals& signals,
                                    const runtime::Log& log) {
  runtime::EnrolOptions options = request.enrol;
  options.request.host = runtime::host_name();
  options.request.pid = static_cast<std::uint64_t>(::getpid());
  // A supervisor is the head's, too, and tells people what it does.
  if (!request.supervised) {
    options.waits = [&](const std::string& why) {
      const std::chrono::duration<double> most = request.enrol.for_a_slot;
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
  Result<void> run();

 private:
  Result<void> go_through_relay();
  Result<void> set_up();

  const MemberRequest& request_;
  RunSignals& signals_;
  const runtime::Clock& clock_;
  runtime::Log& log_;
  runtime::FileDisk disk_;
  const std::shared_ptr<MemberKeeper> keeper_ = std::make_shared<MemberKeeper>();
  const std::shared_ptr<runtime::UcxFabric> ucx_ = std::make_shared<runtime::UcxFabric>(clock_);
  std::unique_ptr<runtime::Wire> wire_;
  std::optional<RelayedMember> relayed_;  // whose wire is used instead
  Slot slot_;
  std::optional<TrainingSetup> setup_;
  std::optional<actors::NodeParts> parts_;
  std::optional<NodeRun> node_;
};

Result<void> MemberRun::prepare() {
  ASSIGN_OR_RETURN(wire_, open_member_wire(request_, *keeper_, ucx_, clock_, log_));
  ASSIGN_OR_RETURN(slot_, ask_head(enrol_options(request_, signals_, log_), *wire_, clock_));
  if (request_.listen == kNoListener) RETURN_IF_ERROR(go_through_relay());
  return set_up();
}

Result<void> MemberRun::go_through_relay() {
  ASSIGN_OR_RETURN(std::optional<RelayedMember> opened,
                   open_relayed_member(request_.enrol.address, slot_.member, slot_.invitation,
                                       request_.credentials, clock_, log_,
                                       [this] { return keeper_->allowed(); }));
  if (opened) relayed_.emplace(std::move(*opened));
  return {};
}

Result<void> MemberRun::set_up() {
  const MemberInvitation& invitation = slot_.invitation;
  ASSIGN_OR_RETURN(config::LoadedTopology loaded,
                   config::parse_topology(invitation.topology, "the head's topology", "."));
  if (loaded.topology.cluster.fabric == config::Fabric::kUcx && request_.listen == kNoListener) {
    return runtime::Error{runtime::ErrorKind::kUsage,
                          "the data of this run travel over UCX (cluster.fabric), for which others "
                          "have to reach this member; give it an address by --listen"};
  }
  RETURN_IF_ERROR(open_fabric(loaded.topology.cluster, *ucx_, log_));
  if (!request_.device.empty()) loaded.topology.replica.device = request_.device;
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
  if (!invitation.order.empty()) {
    setup_->turns.order = std::make_shared<const std::vector<std::uint32_t>>(invitation.order);
  }
  return {};
}

void MemberRun::make_node() {
  parts_.emplace(computing_parts(*setup_, disk_, slot_.member));
  parts_->replica.process = config::member_process(slot_.node)->process;
  parts_->member.replica = actors::replica_name(parts_->reducer.first_replica);
  runtime::NodeOptions options;
  options.shutdown_deadline = request_.shutdown_deadline;
  if (!setup_->data) options.left_out = {config::loader_name(slot_.member)};
  const config::FailureSection& failure = setup_->topology.cluster.failure;
  runtime::GateOptions gate = gate_options(slot_.node, failure, terms_of(*setup_));
  gate.head_address = request_.enrol.address;
  gate.head_returns_within = failure.orphan_after;
  gate.keeper = keeper_;
  runtime::Wire& wire = relayed_ ? *relayed_->wire : *wire_;
  node_.emplace(*setup_, *parts_, std::move(options), std::move(gate), &wire, clock_, log_);
}

Result<void> MemberRun::run() {
  runtime::NodeEnd end = signals_.run(node_->node());
  if (const auto& state = parts_->member.outcome->orphan_state; state != nullptr && end.error) {
    end.error->message += "; " + save_orphan(slot_.node, *setup_, *state, disk_);
  }
  if (!request_.trace.empty()) node_->leave_trace(request_.trace, disk_);
  if (!end.abandoned.empty()) abandon(end, log_);
  if (!end.error) return {};
  return runtime::Error{end.error->kind, fmt::format("{}: {}", slot_.node, end.error->message)};
}

}  // namespace

Result<void> run_member(const MemberRequest& request, runtime::Log& log) {
  RunSignalsOptions options{.supervised = request.supervised};
  // The supervisor tells of the end of one that it has started.
  if (!request.supervised) {
    options.early = [&log](int number) {
      log.error(fmt::format("ended by signal {} before it had joined", number));
    };
  }
  RunSignals signals(options);
  const runtime::SteadyClock clock;
  bool goes = false;  // this machine; the watch says so
  PreemptionWatch watch(request.preemption, log);
  if (const auto why = watch.look()) {
    log.info(*why + "; it does not join");
    return {};
  }
  watch.begin([&](const std::string& why) {
    log.warning(why + "; it leaves the run");
    goes = true;
    signals.leave();
  });
  MemberRun member(request, signals, clock, log);
  const Result<void> prepared = member.prepare();
  Result<void> ended = prepared;
  if (prepared.ok() && !signals.is_leaving()) {
    member.make_node();
    ended = member.run();
  }
  watch.end();
  // The cause that kept it from becoming a member matters to nobody any more.
  if (goes && !prepared.ok()) return {};
  return ended;
}

}  // namespace troupe::launch
