#include "launch/supervise.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "config/cluster_plan.h"
#include "launch/key_folder.h"
#include "launch/nodes_file.h"
#include "launch/process_group.h"
#include "launch/this_host.h"
#include "runtime/base/clock.h"
#include "runtime/base/disk.h"
#include "runtime/transport/resolve.h"

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

// Members that the head has released have nothing to save.
constexpr auto kMemberGrace = std::chrono::seconds(2);

// A folder for sockets that only this user can enter, gone with the object.
class SocketFolder {
 public:
  static Result<SocketFolder> make() {
    std::string path = (std::filesystem::temp_directory_path() / "troupe-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) {
      return Error{ErrorKind::kInternal, fmt::format("cannot make the folder {} for sockets: {}",
                                                     path, std::generic_category().message(errno))};
    }
    return SocketFolder(std::move(path));
  }
  SocketFolder(SocketFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  std::string address() const { return fmt::format("ipc://{}/head", path_); }

 private:
  explicit SocketFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Where the head listens, and where members of this host dial it.
struct Meeting {
  std::string listen;
  std::string dial;
};

bool is_here(const config::HostSection& host) { return is_this_host(host.address); }

// For members on other hosts.
Result<Meeting> meet_on_network(const config::ClusterSection& cluster, const config::Place& place) {
  const auto refused = [&](const std::string& why) {
    return Error{
        ErrorKind::kTopology,
        config::Problem{place, fmt::format("cluster.listen: {} {}", cluster.listen, why)}.text()};
  };
  ASSIGN_OR_RETURN(const runtime::Address address, runtime::parse_address(cluster.listen));
  ASSIGN_OR_RETURN(const runtime::ResolvedAddress resolved, runtime::resolve(address));
  if (resolved.loopback) {
    const auto away = std::find_if_not(cluster.hosts.begin(), cluster.hosts.end(), is_here);
    return refused(
        fmt::format("is reached from this machine only, and members are to run on {}; give an "
                    "address of this machine that others reach, with a port, and cluster.keys",
                    away->address));
  }
  if (address.port == 0) {
    return refused(
        "has no port of its own, so that other hosts cannot be told where to join; give a port "
        "other than 0");
  }
  Meeting meeting{cluster.listen, cluster.listen};
  if (resolved.any) meeting.dial = fmt::format("tcp://127.0.0.1:{}", address.port);
  return meeting;
}

// A process of the group that has ended.
struct Ended {
  std::string name;
  pid_t pid = 0;
  ChildEnd end;
};

// What the file shall say of it; `known` is what the head has said last. A process that was killed
// did not say how; of all others the head knows better, if it has seen their end.
NodeEntry entry_of(const Ended& ended, const NodeEntry* known) {
  const bool seen =
      known != nullptr && (known->state == NodeState::kEnded || known->state == NodeState::kDead);
  if (seen && ended.end.signal == 0) return *known;
  NodeEntry entry;
  entry.name = ended.name;
  entry.host = host_name();
  entry.pid = ended.pid;
  entry.role = ended.name == config::kHeadNode ? "head" : "member";
  const bool well = ended.end == ChildEnd{};
  entry.state = well ? NodeState::kEnded : NodeState::kDead;
  if (!well) entry.cause = ended.end.text();
  return entry;
}

// The head keeps the file; what it could not see any more is put right when it has ended.
Result<void> put_right(const std::string& path, const std::vector<Ended>& all) {
  if (!std::filesystem::exists(path)) return {};
  runtime::FileDisk disk;
  NodesFile nodes(path, disk);
  nodes.load();
  const std::vector<NodeEntry> entries = nodes.entries();
  // The folder may hold another run, which this one's head has refused to touch.
  const bool is_ours = std::any_of(all.begin(), all.end(), [&](const Ended& ended) {
    return std::any_of(entries.begin(), entries.end(), [&](const NodeEntry& entry) {
      return ended.name == config::kHeadNode && entry.name == ended.name && entry.pid == ended.pid;
    });
  });
  if (!is_ours) return {};
  for (const Ended& ended : all) {
    const auto known = std::find_if(entries.begin(), entries.end(), [&](const NodeEntry& entry) {
      return entry.name == ended.name;
    });
    RETURN_IF_ERROR(nodes.set(entry_of(ended, known == entries.end() ? nullptr : &*known)));
  }
  return {};
}

std::vector<GroupProcess> member_processes(const SuperviseRequest& request,
                                           const std::vector<std::uint32_t>& here,
                                           const std::string& dial) {
  std::vector<GroupProcess> members;
  for (const std::uint32_t number : here) {
    GroupProcess member;
    member.name = config::member_name(number);
    member.program.words = {request.program, "join", dial, "--node", member.name, "--patient"};
    if (request.key_folder) {
      member.program.words.insert(member.program.words.end(), {"--key", *request.key_folder});
    }
    member.program.out = prefixed_lines(member.name, STDERR_FILENO);
    member.program.err = prefixed_lines(member.name, STDERR_FILENO);
    members.push_back(std::move(member));
  }
  return members;
}

}  // namespace

std::vector<std::uint32_t> members_here(const config::ClusterSection& cluster) {
  std::vector<std::uint32_t> here;
  std::uint32_t next = 0;
  for (const config::HostSection& host : cluster.hosts) {
    const bool is_mine = is_here(host);
    for (std::uint32_t i = 0; i < host.workers; ++i, ++next) {
      if (is_mine) here.push_back(next);
    }
  }
  return here;
}

Result<GroupEnd> supervise(const SuperviseRequest& request, runtime::Log& log) {
  std::vector<std::uint32_t> here(request.members);
  std::iota(here.begin(), here.end(), 0);
  if (request.cluster) here = members_here(*request.cluster);
  ASSIGN_OR_RETURN(const SocketFolder sockets, SocketFolder::make());
  Meeting meeting{sockets.address(), sockets.address()};
  if (here.size() < request.members) {
    ASSIGN_OR_RETURN(meeting, meet_on_network(*request.cluster, request.listen_place));
  }
  if (request.key_folder) {
    ASSIGN_OR_RETURN(const KeyFolder keys, read_key_folder(*request.key_folder));
    meeting.dial += fmt::format("#{}", keys.own.public_key);
  }

  ProcessGroupOptions options;
  options.head.name = config::kHeadNode;
  options.head.program.words = {request.program};
  auto& words = options.head.program.words;
  words.insert(words.end(), request.head_words.begin(), request.head_words.end());
  words.insert(words.end(), {"--head-at", meeting.listen});
  for (const std::uint32_t number : here) {
    words.insert(words.end(), {"--member-here", config::member_name(number)});
  }
  options.members = member_processes(request, here, meeting.dial);
  options.member_grace = kMemberGrace;
  std::vector<Ended> ended;
  options.changed = [&](const ProcessChange& change) {
    if (change.end) ended.push_back({change.name, change.pid, *change.end});
  };
  const runtime::SteadyClock clock;
  ProcessGroup group(std::move(options), clock, log);
  ASSIGN_OR_RETURN(GroupEnd end, group.run());
  const auto right = put_right(request.nodes_path, ended);
  if (!right.ok()) log.warning(right.error().message);
  return end;
}

}  // namespace troupe::launch
