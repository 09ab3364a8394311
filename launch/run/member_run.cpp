#include "launch/run/member_run.h"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/spawn.h"
#include "config/cluster_plan.h"
#include "config/topology_file.h"
#include "config/topology_identity.h"
#include "launch/folder/nodes_file.h"
#include "launch/machine/node_sampler.h"
#include "launch/meeting/invitation.h"
#include "launch/meeting/member_address.h"
#include "launch/meeting/relayed_member.h"
#include "launch/run/abandon.h"
#include "launch/run/orphan_folder.h"
#include "launch/run/run_signals.h"
#include "launch/run/run_trace.h"
#include "launch/run/training_setup.h"
#include "runtime/base/disk.h"
#include "runtime/node/node.h"
#include "runtime/transport/enrol.h"

namespace troupe::launch {
namespace {

using runtime::Result;

// Whether there is a way to the head by now.
constexpr auto kLookAgain = std::chrono::milliseconds(200);

struct Call {
  std::string node;
  std::uint32_t member = 0;
  MemberInvitation invitation;
};

// Those whom the head has told of, and nobody else. One thread's.
class FellowKeys {
 public:
  void take(const std::vector<runtime::DirectoryEntry>& fellows) {
    allowed_.clear();
    for (const runtime::DirectoryEntry& fellow : fellows) {
      if (!fellow.key.empty()) allowed_.push_back({fellow.key, fellow.node});
    }
  }
  const std::vector<runtime::AllowedKey>& allowed() const { return allowed_; }

 private:
  std::vector<runtime::AllowedKey> allowed_;
};

// The keys outlive the wire.
Result<std::unique_ptr<runtime::Wire>> open_member_wire(const MemberRequest& request,
                                                        const FellowKeys& fellows,
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
  return open_wire(listen, request.credentials, clock, log,
                   [&fellows] { return fellows.allowed(); });
}

// Which member the name stands for.
Result<std::uint32_t> number_of(const std::string& node, std::uint32_t members) {
  for (std::uint32_t i = 0; i < members; ++i) {
    if (config::member_name(i) == node) return i;
  }
  return runtime::Error{
      runtime::ErrorKind::kLostPeers,
      fmt::format("the head calls this process '{}', which none of {} members is", node, members)};
}

Result<Call> ask_head(const MemberRequest& request, runtime::Wire& wire,
                      const runtime::Clock& clock, RunSignals& signals, const runtime::Log& log) {
  runtime::EnrolOptions options;
  options.address = request.address;
  options.request.node = request.node;
  options.request.host = host_name();
  options.request.pid = static_cast<std::uint64_t>(::getpid());
  options.within = request.within;
  options.for_a_place = request.for_a_place;
  options.waits = [&](const std::string& why) {
    const std::chrono::duration<double> most = request.for_a_place;
    log.info(fmt::format("{}; asking again, for {:.0f} s at most (--wait)", why, most.count()));
  };
  // Its supervisor is the head's, and tells people what it does.
  if (request.supervised) options.waits = nullptr;
  options.cancelled = [&signals] { return signals.is_leaving(); };
  ASSIGN_OR_RETURN(const runtime::Invitation answer, runtime::enrol(wire, options, clock));
  Call call;
  call.node = answer.node;
  ASSIGN_OR_RETURN(call.invitation, unpack_invitation(answer.contents));
  ASSIGN_OR_RETURN(call.member, number_of(answer.node, call.invitation.places));
  return call;
}

std::string data_folder_of(const MemberRequest& request, const MemberInvitation& invitation) {
  if (!request.data_folder.empty()) return request.data_folder;
  return invitation.host == host_name() ? invitation.data_folder : "runs/data";
}

Result<TrainingSetup> set_up_member(const MemberRequest& request, const config::Topology& topology,
                                    const MemberInvitation& invitation, runtime::Log& log) {
  const RunSize size{invitation.members, invitation.places, 0};
  if (!request.remote_data) {
    return set_up_training(topology, size, data_folder_of(request, invitation), false, log);
  }
  log.info(fmt::format("without data of its own: the head sends the micro-batches, of the data {}",
                       invitation.data.fingerprint.text()));
  return set_up_training(topology, size, invitation.data);
}

// What became of the state of a member that has lost its head for good, for people.
std::string save_orphan(const std::string& node, const config::Topology& topology,
                        const std::string& effective, const TrainingSetup& setup,
                        const pipeline::TrainingState& state, runtime::Disk& disk) {
  const std::string folder =
      orphan_folder(node, std::chrono::system_clock::to_time_t(runtime::wall_now()));
  const std::string what =
      fmt::format("its state after {} steps", state.step(setup.options.schedule.size()));
  const auto written = write_orphan(folder, topology, effective, setup, state, disk);
  if (!written.ok()) return fmt::format("{} was not saved: {}", what, written.error().message);
  return fmt::format(
      "{} is saved, and one member's is enough to go on with: troupe run --resume {}", what,
      folder);
}

// It may be noticed at any time, and costs the run nothing before there is a node.
Result<MemberResult> join_run(const MemberRequest& request, RunSignals& signals,
                              const runtime::Clock& clock, runtime::Log& log) {
  FellowKeys fellows;
  ASSIGN_OR_RETURN(const auto own_wire, open_member_wire(request, fellows, clock, log));
  ASSIGN_OR_RETURN(const Call call, ask_head(request, *own_wire, clock, signals, log));
  const MemberInvitation& invitation = call.invitation;
  std::optional<RelayedMember> relayed;
  if (request.listen == kNoListener) {
    ASSIGN_OR_RETURN(
        std::optional<RelayedMember> opened,
        open_relayed_member(request.address, call.member, invitation, request.credentials, clock,
                            log, [&fellows] { return fellows.allowed(); }));
    if (opened) relayed.emplace(std::move(*opened));
  }
  runtime::Wire& wire = relayed ? *relayed->wire : *own_wire;
  ASSIGN_OR_RETURN(const config::LoadedTopology loaded,
                   config::parse_topology(invitation.topology, "the head's topology", "."));
  const config::Topology& topology = loaded.topology;
  ASSIGN_OR_RETURN(TrainingSetup setup, set_up_member(request, topology, invitation, log));
  if (signals.is_leaving()) return MemberResult{};
  runtime::FileDisk disk;
  actors::NodeParts parts = computing_parts(setup, topology, disk, invitation.members, call.member);
  parts.member.replica = fmt::format("replica.{}", parts.reducer.first_replica);
  // Asked for by an actor that it runs.
  const runtime::Node* running = nullptr;
  parts.member.sample = [&] { return sample_node(call.node, *running); };
  parts.member.trace = [&] { return running->traces(); };
  parts.member.waits = [&] { return running->wait_for_graph(); };
  const runtime::WireTypes types = wire_types(*setup.gan, setup.options);
  runtime::GateOptions gate = gate_options(call.node, topology.cluster.failure,
                                           terms_of(setup, config::topology_hash(topology)));
  gate.first_address = request.address;
  gate.first_returns_within = topology.cluster.failure.orphan_after;
  gate.on_directory = [&fellows](const auto& told) { fellows.take(told); };

  runtime::NodeOptions options;
  options.scheduler_threads = 1;
  options.shutdown_deadline = request.shutdown_deadline;
  options.stuck_after = topology.cluster.failure.stuck_after;
  if (!setup.data) options.left_out = {config::loader_name(call.member)};
  runtime::Node node(setup.plan, actors::make_actor_factory(parts), options, clock, log,
                     runtime::Uplink{std::move(gate), wire, types});
  running = &node;
  runtime::NodeEnd end = signals.run(node);
  if (const auto& state = parts.member.outcome->orphan_state; state != nullptr && end.error) {
    end.error->message +=
        "; " + save_orphan(call.node, topology, invitation.topology, setup, *state, disk);
  }
  if (!request.trace.empty()) {
    const auto traced = write_trace(request.trace, disk, node.traces());
    if (!traced.ok()) log.warning(traced.error().message);
  }
  if (!end.abandoned.empty()) abandon(end, log);
  return MemberResult{call.node, end.error, signals.stopped_by(), {}};
}

}  // namespace

Result<MemberResult> run_member(const MemberRequest& request, runtime::Log& log) {
  RunSignalsOptions options{.supervised = request.supervised};
  // What has started it tells of its end.
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
