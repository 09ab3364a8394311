#include "launch/run/supervise.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "config/plan.h"
#include "launch/folder/membership_file.h"
#include "launch/folder/nodes_file.h"
#include "launch/folder/run_folder.h"
#include "launch/meeting/key_folder.h"
#include "launch/meeting/socket_folder.h"
#include "launch/processes/process_group.h"
#include "launch/run/training_setup.h"
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

std::vector<std::string> program_with(const std::vector<std::string>& words) {
  std::vector<std::string> all{std::filesystem::read_symlink("/proc/self/exe").string()};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

GroupProcess head_process(const SuperviseRequest& request, std::vector<std::string> words,
                          const MeetingPlace& meeting,
                          const std::vector<std::uint32_t>& members_here) {
  words.insert(words.end(), {"--head-at", meeting.listen});
  for (const std::uint32_t number : members_here) {
    words.insert(words.end(), {"--member-here", config::member_name(number)});
  }
  return {config::kHeadNode,
          {.words = program_with(words),
           .out = nullptr,
           .err = nullptr,
           .input = config::print_topology(request.loaded)}};
}

// `device`: in place of the topology's.
GroupProcess member_process(const SuperviseRequest& request, const MeetingPlace& meeting,
                            std::uint32_t number, const std::string& device = "") {
  const std::string name = config::member_name(number);
  std::vector<std::string> words{"join", meeting.dial, "--node", name, "--supervised"};
  if (!meeting.neighbours.empty()) {
    words.insert(words.end(), {"--listen", meeting.neighbours});
  }
  if (const auto& keys = request.loaded.topology.cluster.keys) {
    words.insert(words.end(), {"--key", *keys});
  }
  if (!device.empty()) words.insert(words.end(), {"--device", device});
  words.insert(words.end(), request.member_words.begin(), request.member_words.end());
  if (request.trace) {
    const std::string file =
        fmt::format("{}/{}/{}.json", request.run_folder, RunFolder::kTrace, name);
    words.insert(words.end(), {"--trace", file});
  }
  const LineSink lines = prefixed_lines(name, STDERR_FILENO);
  return {name, {.words = program_with(words), .out = lines, .err = lines}};
}

}  // namespace

// The processes meet in a folder of sockets, unless the placement has a place on the network. The
// file of nodes is put right when everybody has ended.
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
  if (const auto& folder = request.loaded.topology.cluster.keys) {
    ASSIGN_OR_RETURN(const KeyFolder keys, read_key_folder(*folder));
    meeting.dial += fmt::format("#{}", keys.own.public_key);
  }

  const Placement& placement = request.placement;
  ProcessGroupOptions options;
  // The members take turns at the cards of this host. One that is started later takes the card with
  // the most free memory, which the member that it replaces has left.
  const bool on_cards = request.loaded.topology.replica.device == config::kGpu;
  for (const std::uint32_t number : placement.here) {
    const std::string card =
        fmt::format("{}:{}", config::kGpu, options.members.size() % config::kMostDevices);
    options.members.push_back(member_process(request, meeting, number, on_cards ? card : ""));
  }
  // Lost members of this host are replaced, and heads.
  options.head_restarts = size_of_run(request.loaded.topology, placement.members).restart;
  std::vector<std::uint32_t> all_here = placement.here;
  const std::uint32_t replacements = placement.here.empty() ? 0 : options.head_restarts;
  for (std::uint32_t i = 0; i < replacements; ++i) {
    all_here.push_back(placement.members + i);
    options.replacements.push_back(member_process(request, meeting, all_here.back()));
  }
  options.head = head_process(request, request.head_words, meeting, all_here);
  options.next_head = head_process(request, request.next_head_words, meeting, all_here);
  options.can_return = [path = request.run_folder + "/" + MembershipFile::kName] {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
  };
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
