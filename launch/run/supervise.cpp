#include "launch/run/supervise.h"

#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "config/plan.h"
#include "launch/folder/membership_file.h"
#include "launch/folder/nodes_file.h"
#include "launch/meeting/key_folder.h"
#include "launch/meeting/socket_folder.h"
#include "launch/processes/process_group.h"
#include "runtime/base/clock.h"
#include "runtime/node/gate.h"
#include "runtime/transport/zmq_wire.h"

namespace troupe::launch {
namespace {

using runtime::Result;

// Members that the head has released have nothing to save, but their gates wait for what neighbours
// have not acknowledged yet, and their wires for a goodbye to one that has hung up just before it.
runtime::Duration member_grace() {
  return runtime::GateOptions{}.close_within + runtime::ZmqWireOptions{}.linger +
         std::chrono::seconds(1);
}

GroupProcess head_process(const SuperviseRequest& request, const std::vector<std::string>& words,
                          const MeetingPlace& meeting,
                          const std::vector<std::uint32_t>& members_here) {
  GroupProcess head;
  head.name = config::kHeadNode;
  head.program.words = {request.program};
  head.program.input = request.topology;
  auto& all = head.program.words;
  all.insert(all.end(), words.begin(), words.end());
  all.insert(all.end(), {"--head-at", meeting.listen});
  for (const std::uint32_t number : members_here) {
    all.insert(all.end(), {"--member-here", config::member_name(number)});
  }
  return head;
}

std::vector<GroupProcess> member_processes(const SuperviseRequest& request,
                                           const MeetingPlace& meeting,
                                           const std::vector<std::uint32_t>& numbers) {
  std::vector<GroupProcess> members;
  for (const std::uint32_t number : numbers) {
    GroupProcess member;
    member.name = config::member_name(number);
    member.program.words = {request.program, "join",      meeting.dial,
                            "--node",        member.name, "--patient"};
    if (!meeting.neighbours.empty()) {
      member.program.words.insert(member.program.words.end(), {"--listen", meeting.neighbours});
    }
    if (request.key_folder) {
      member.program.words.insert(member.program.words.end(), {"--key", *request.key_folder});
    }
    member.program.words.insert(member.program.words.end(), request.member_words.begin(),
                                request.member_words.end());
    if (!request.trace_folder.empty()) {
      member.program.words.insert(
          member.program.words.end(),
          {"--trace", fmt::format("{}/{}.json", request.trace_folder, member.name)});
    }
    member.program.out = prefixed_lines(member.name, STDERR_FILENO);
    member.program.err = prefixed_lines(member.name, STDERR_FILENO);
    members.push_back(std::move(member));
  }
  return members;
}

}  // namespace

Result<GroupEnd> supervise(const SuperviseRequest& request, runtime::Log& log) {
  std::optional<SocketFolder> sockets;
  MeetingPlace meeting;
  if (request.placement.network) {
    meeting = *request.placement.network;
  } else {
    ASSIGN_OR_RETURN(SocketFolder folder, SocketFolder::make());
    sockets.emplace(std::move(folder));
    meeting = {sockets->address(), sockets->address()};
  }
  if (request.key_folder) {
    ASSIGN_OR_RETURN(const KeyFolder keys, read_key_folder(*request.key_folder));
    meeting.dial += fmt::format("#{}", keys.own.public_key);
  }

  ProcessGroupOptions options;
  std::vector<std::uint32_t> replacements(request.placement.here.empty() ? 0 : request.restart);
  std::iota(replacements.begin(), replacements.end(), request.placement.members);
  std::vector<std::uint32_t> all_here = request.placement.here;
  all_here.insert(all_here.end(), replacements.begin(), replacements.end());
  options.head = head_process(request, request.head_words, meeting, all_here);
  options.next_head = head_process(request, request.next_head_words, meeting, all_here);
  options.head_restarts = request.restart;
  options.can_return = [path = request.run_folder + "/" + MembershipFile::kName] {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
  };
  options.members = member_processes(request, meeting, request.placement.here);
  options.replacements = member_processes(request, meeting, replacements);
  options.member_grace = member_grace();
  std::vector<EndedProcess> ended;
  options.changed = [&](const ProcessChange& change) {
    if (!change.end) return;
    // Only the last head's end is the run's.
    std::erase_if(ended, [&](const EndedProcess& each) { return each.name == change.name; });
    ended.push_back({change.name, change.pid, *change.end});
  };
  const runtime::SteadyClock clock;
  ProcessGroup group(std::move(options), clock, log);
  ASSIGN_OR_RETURN(GroupEnd end, group.run());
  const auto settled = settle_nodes(request.run_folder + "/" + NodesFile::kName, ended);
  if (!settled.ok()) log.warning(settled.error().message);
  return end;
}

}  // namespace troupe::launch
