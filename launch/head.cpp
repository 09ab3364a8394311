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

namespace {

// Every member and the host it is meant for.
std::vector<std::pair<std::string, std::string>> hosts_of_members(const LocalRunRequest& request) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const config::HostSection& host : request.topology.cluster.hosts) {
    for (std::uint32_t i = 0; i < host.workers; ++i) {
      all.emplace_back(config::member_name(static_cast<std::uint32_t>(all.size())), host.address);
    }
  }
  // --workers may ask for more than the topology's hosts have.
  while (all.size() < request.members) {
    all.emplace_back(config::member_name(static_cast<std::uint32_t>(all.size())), "any host");
  }
  return all;
}

}  // namespace

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
  // What the process above this one starts asks for its own name.
  auto names = std::make_shared<MemberNames>(
      std::set<std::string>(request.members_here.begin(), request.members_here.end()));
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
  // Quoted: keys are full of what means something to a shell.
  std::string line = fmt::format("troupe join '{}'", wire.address());
  if (cluster.keys) {
    const auto keys = read_key_folder(*cluster.keys);
    if (keys.ok()) {
      line = fmt::format("troupe join '{}#{}' --key DIR", wire.address(), keys->own.public_key);
    }
  }
  const std::set<std::string> here(request.members_here.begin(), request.members_here.end());
  std::string lines;
  for (const auto& [member, host] : hosts_of_members(request)) {
    if (!here.contains(member)) lines += fmt::format("\n  on {}: {} --node {}", host, line, member);
  }
  if (!lines.empty()) log.info("waiting for members of other hosts; type there:" + lines);
}

}  // namespace troupe::launch
