#include "launch/run/head.h"

#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/cluster_plan.h"
#include "config/member_ring.h"
#include "launch/folder/nodes_file.h"
#include "launch/machine/this_host.h"
#include "launch/meeting/invitation.h"
#include "launch/meeting/join_lines.h"
#include "launch/meeting/key_folder.h"
#include "launch/meeting/member_names.h"
#include "launch/meeting/node_uplink.h"
#include "launch/run/training_setup.h"
#include "runtime/base/secret.h"
#include "runtime/transport/resolve.h"

namespace troupe::launch {

using runtime::Result;

namespace {

// Those that the run cannot begin without, while there are any.
std::vector<std::string> awaited_first(const std::vector<std::string>& awaited,
                                       std::uint32_t members) {
  std::set<std::string> first;
  for (std::uint32_t i = 0; i < members; ++i) first.insert(config::member_name(i));
  std::vector<std::string> needed;
  for (const std::string& name : awaited) {
    if (first.contains(name)) needed.push_back(name);
  }
  return needed.empty() ? awaited : needed;
}

bool stays_on_this_machine(const std::string& listen) {
  const auto address = runtime::parse_address(listen);
  if (!address.ok()) return false;
  const auto resolved = runtime::resolve(*address);
  return resolved.ok() && resolved->loopback;
}

}  // namespace

Result<std::unique_ptr<runtime::Wire>> open_head_wire(const LocalRunRequest& request,
                                                      const runtime::Clock& clock,
                                                      const runtime::Log& log) {
  if (request.members == 0) return std::unique_ptr<runtime::Wire>();
  RETURN_IF_ERROR(check_topology_fits(request.effective_topology));
  return open_wire(request.listen, {request.topology.cluster.keys, std::nullopt}, clock, log);
}

std::function<void(const std::string& node)> make_room_for_next(RunSignals& signals,
                                                                const runtime::Log& log) {
  return [&signals, &log](const std::string& node) {
    if (signals.stopped_by() != 0) return;
    log.error(
        fmt::format("{} has given this head up, which stood still: another one "
                    "takes its place",
                    node));
    (void)::raise(SIGKILL);
  };
}

runtime::GateOptions head_gate(const LocalRunRequest& request, const TrainingSetup& setup,
                               const runtime::Clock& clock, MembershipFile& membership,
                               HeadRelay& relay, const runtime::Log& log) {
  runtime::GateOptions gate = gate_options(config::kHeadNode, request.topology.cluster.failure,
                                           terms_of(setup, request.topology_hash));
  // What the process above this one starts asks for its own name.
  auto names = std::make_shared<MemberNames>(
      std::set<std::string>(request.members_here.begin(), request.members_here.end()));
  gate.is_this_machine = is_this_host;
  gate.predecessors = membership.history().incarnations;
  gate.draw = [&membership, &log](const std::string& one, const std::string& other) {
    const auto& known = membership.history().fellows;
    if (const auto found = known.find(std::minmax(one, other)); found != known.end()) {
      return found->second;
    }
    const std::uint64_t number = runtime::secret_number();
    const auto written = membership.add_fellows(one, other, number);
    if (!written.ok()) log.warning(written.error().message);
    return number;
  };
  gate.invite = [&request, &clock, &membership, &relay, names, identity = setup.identity](
                    const runtime::Enrolment& enrolment,
                    const std::vector<std::string>& awaited) -> Result<runtime::EnrolmentAnswer> {
    // Before there was a View a process that failed may be started again as the same member.
    const HeadHistory& history = membership.history();
    std::vector<std::string> free;
    for (const std::string& name : awaited) {
      if (history.members.empty() || !history.places.contains(name)) free.push_back(name);
    }
    const std::vector<std::string> now = awaited_first(free, request.members);
    const auto name = names->choose(enrolment.node, enrolment.host, now, clock.now());
    if (!name) {
      ASSIGN_OR_RETURN(runtime::NotNow not_now, names->why_none(enrolment.node, now, free));
      return runtime::EnrolmentAnswer(std::move(not_now));
    }
    const auto relay_token = relay.admit(*name);
    RETURN_IF_ERROR(membership.add_place(*name, relay_token));
    MemberInvitation contents;
    contents.relay_port = relay.port();
    if (relay_token) contents.relay_token = *relay_token;
    contents.topology = request.effective_topology;
    contents.members = request.members;
    contents.places = size_of_run(request.topology, request.members).places;
    contents.data_folder = std::filesystem::absolute(request.data_folder).string();
    contents.host = host_name();
    contents.data = identity;
    return runtime::EnrolmentAnswer(runtime::Invitation{*name, pack_invitation(contents)});
  };
  return gate;
}

void tell_members(const LocalRunRequest& request, const runtime::Wire& wire,
                  const runtime::Log& log) {
  const config::ClusterSection& cluster = request.topology.cluster;
  const std::string ring = config::ring_text(cluster, request.members);
  if (!ring.empty()) log.info(ring);
  const std::set<std::string> here(request.members_here.begin(), request.members_here.end());
  std::uint32_t begin_here = 0;
  for (std::uint32_t i = 0; i < request.members; ++i) {
    begin_here += here.contains(config::member_name(i)) ? 1 : 0;
  }
  const bool awaits_others = begin_here < request.members;
  // Without keys nothing is listened to beyond this machine.
  if (!awaits_others && (cluster.joiners == 0 || !cluster.keys)) return;
  std::string key;
  if (cluster.keys) {
    const auto keys = read_key_folder(*cluster.keys);
    if (keys.ok()) key = keys->own.public_key;
  }
  const auto addresses =
      addresses_to_dial(request.listen, wire.address(), cluster.hosts, interface_addresses());
  if (!awaits_others) {
    log.info(newcomer_lines(addresses, key, stays_on_this_machine(request.listen)));
    return;
  }
  const std::string lines = join_lines(cluster, request.members, here, addresses, key);
  if (!lines.empty()) log.info("waiting for members of other hosts; type there:" + lines);
}

}  // namespace troupe::launch
