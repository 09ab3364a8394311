#include "launch/head.h"

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "config/cluster_plan.h"
#include "launch/invitation.h"
#include "launch/key_folder.h"
#include "launch/node_uplink.h"
#include "launch/nodes_file.h"

namespace troupe::launch {

using runtime::Result;

Result<std::unique_ptr<runtime::Wire>> open_head_wire(const LocalRunRequest& request,
                                                      const runtime::Clock& clock,
                                                      const runtime::Log& log) {
  if (request.members == 0) return std::unique_ptr<runtime::Wire>();
  return open_wire(request.listen, {request.topology.cluster.keys, std::nullopt}, clock, log);
}

runtime::GateOptions head_gate(const LocalRunRequest& request, const TrainingSetup& setup,
                               const runtime::Clock& clock) {
  runtime::GateOptions gate = gate_options(config::kHeadNode, request.topology.cluster.failure,
                                           terms_of(setup, request.topology_hash));
  std::set<std::string> started_here;  // by the process above this one, each with its name
  for (std::uint32_t i = 0; i < request.members_here; ++i) {
    started_here.insert(config::member_name(i));
  }
  auto names = std::make_shared<MemberNames>(std::move(started_here));
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
    // Quoted: keys are full of what means something to a shell.
    if (keys.ok()) {
      line = fmt::format("troupe join '{}#{}' --key DIR", wire.address(), keys->own.public_key);
    }
  }
  log.info(fmt::format("waiting for {} more members; for each of them type on its host:\n  {}",
                       request.members - request.members_here, line));
}

}  // namespace troupe::launch
