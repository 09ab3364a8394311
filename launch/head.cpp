#include "launch/head.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/messages.h"
#include "config/cluster_plan.h"
#include "launch/invitation.h"
#include "launch/key_folder.h"
#include "launch/lost_member.h"
#include "launch/node_uplink.h"
#include "launch/nodes_file.h"

namespace troupe::launch {

using runtime::Result;

std::unique_ptr<ParentLine> hear_of_lost_members(const LocalRunRequest& request,
                                                 RunSignals& signals) {
  if (request.members_here == 0) return nullptr;
  return std::make_unique<ParentLine>(kParentLineDescriptor, [&signals](const std::string& line) {
    const auto lost = parse_lost_member(line);
    if (!lost) return;
    signals.tell_coordinator(
        runtime::Message::of(actors::MemberEnded{lost->name, lost->error()}));
  });
}

Result<std::unique_ptr<runtime::Wire>> open_head_wire(const LocalRunRequest& request,
                                                      const runtime::Clock& clock,
                                                      const runtime::Log& log) {
  if (request.members == 0) return std::unique_ptr<runtime::Wire>();
  return open_wire(request.listen, request.topology.cluster.keys, clock, log);
}

runtime::GateOptions head_gate(const LocalRunRequest& request, const TrainingSetup& setup,
                               const runtime::Clock& clock) {
  runtime::GateOptions gate = gate_options(config::kHeadNode, request.topology.cluster.failure,
                                           terms_of(setup, request.topology_hash));
  auto names = std::make_shared<MemberNames>();
  gate.invite = [&request, &clock, names](
                    const runtime::Enrolment& enrolment,
                    const std::vector<std::string>& awaited) -> Result<runtime::Invitation> {
    ASSIGN_OR_RETURN(std::string name, names->choose(enrolment.node, awaited, clock.now()));
    MemberInvitation contents;
    contents.topology = request.effective_topology;
    contents.members = request.members;
    contents.data_folder = std::filesystem::absolute(request.data_folder).string();
    contents.host = host_name();
    return runtime::Invitation{std::move(name), pack_invitation(contents)};
  };
  return gate;
}

void tell_who_is_awaited(const LocalRunRequest& request, const runtime::Wire& wire,
                         const runtime::Log& log) {
  const config::ClusterSection& cluster = request.topology.cluster;
  if (request.members_here == request.members) return;
  std::string line = fmt::format("troupe join {}", wire.address());
  if (cluster.keys) {
    const auto keys = read_key_folder(*cluster.keys);
    if (keys.ok()) line += fmt::format("#{} --key DIR", keys->own.public_key);
  }
  log.info(fmt::format("waiting for {} more members; for each of them type on its host:\n  {}",
                       request.members - request.members_here, line));
}

}  // namespace troupe::launch
