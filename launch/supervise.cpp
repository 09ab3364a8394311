#include "launch/supervise.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "config/cluster_plan.h"
#include "launch/key_folder.h"
#include "launch/nodes_file.h"
#include "launch/process_group.h"
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

Result<Meeting> meet_on_network(const std::string& listen) {
  ASSIGN_OR_RETURN(const runtime::Address address, runtime::parse_address(listen));
  if (address.kind == runtime::Address::Kind::kTcp && address.port == 0) {
    return Error{
        ErrorKind::kUsage,
        fmt::format("cluster.listen: {} has no port of its own, so that other hosts cannot "
                    "be told where to join; give HOST:PORT with a port other than 0",
                    listen)};
  }
  Meeting meeting{listen, listen};
  ASSIGN_OR_RETURN(const runtime::ResolvedAddress resolved, runtime::resolve(address));
  if (resolved.any) meeting.dial = fmt::format("tcp://127.0.0.1:{}", address.port);
  return meeting;
}

NodeEntry entry_of(const ProcessChange& change) {
  NodeEntry entry;
  entry.name = change.name;
  entry.host = host_name();
  entry.pid = change.pid;
  entry.role = change.name == config::kHeadNode ? "head" : "member";
  if (!change.end) return entry;
  const bool well = *change.end == ChildEnd{};
  entry.state = well ? NodeState::kEnded : NodeState::kDead;
  if (!well) entry.cause = change.end->text();
  return entry;
}

std::vector<GroupProcess> member_processes(const SuperviseRequest& request, std::uint32_t here,
                                           const std::string& dial) {
  std::vector<GroupProcess> members;
  for (std::uint32_t i = 0; i < here; ++i) {
    GroupProcess member;
    member.name = config::member_name(i);
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

std::uint32_t members_here(const config::ClusterSection& cluster) {
  std::uint32_t here = 0;
  for (const config::HostSection& host : cluster.hosts) {
    runtime::Address address;
    address.host = host.address;
    const auto resolved = runtime::resolve(address);
    const bool loopback = resolved.ok() && resolved->loopback;
    if (loopback || host.address == host_name()) here += host.workers;
  }
  return here;
}

Result<GroupEnd> supervise(const SuperviseRequest& request, runtime::Log& log) {
  std::uint32_t here = request.members;
  if (request.cluster) here = members_here(*request.cluster);
  ASSIGN_OR_RETURN(const SocketFolder sockets, SocketFolder::make());
  Meeting meeting{sockets.address(), sockets.address()};
  if (here < request.members) {
    ASSIGN_OR_RETURN(meeting, meet_on_network(request.cluster->listen));
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
  words.insert(words.end(), {"--head-at", meeting.listen, "--members-here", std::to_string(here)});
  options.members = member_processes(request, here, meeting.dial);
  options.member_grace = kMemberGrace;
  // The head keeps the file; what it could not see any more is put right when it has ended.
  std::vector<NodeEntry> ended;
  options.changed = [&](const ProcessChange& change) {
    if (change.end) ended.push_back(entry_of(change));
  };
  const runtime::SteadyClock clock;
  ProcessGroup group(std::move(options), clock, log);
  ASSIGN_OR_RETURN(GroupEnd end, group.run());
  runtime::FileDisk disk;
  NodesFile nodes(request.nodes_path, disk);
  if (!std::filesystem::exists(request.nodes_path)) return end;
  for (const NodeEntry& entry : ended) {
    if (const auto written = nodes.set(entry); !written.ok()) log.warning(written.error().message);
  }
  return end;
}

}  // namespace troupe::launch
