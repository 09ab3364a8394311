#include "launch/run/nodes_settled.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "config/cluster_plan.h"
#include "launch/folder/nodes_file.h"
#include "runtime/base/disk.h"

namespace troupe::launch {
namespace {

using runtime::Result;

const EndedProcess* find(const std::vector<EndedProcess>& all, const std::string& name) {
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const EndedProcess& process) { return process.name == name; });
  return found == all.end() ? nullptr : &*found;
}

NodeEntry entry_of(const EndedProcess& ended) {
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

}  // namespace

Result<void> settle_nodes(const std::string& path, const std::vector<EndedProcess>& ended) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return {};
  runtime::FileDisk disk;
  NodesFile nodes(path, disk);
  nodes.load();
  const std::vector<NodeEntry> known = nodes.entries();
  const EndedProcess* head = find(ended, config::kHeadNode);
  // The folder may hold another run, which this one's head has refused to touch.
  const bool is_ours =
      head != nullptr && std::any_of(known.begin(), known.end(), [&](const NodeEntry& entry) {
        return entry.name == head->name && entry.pid == head->pid;
      });
  if (!is_ours) return {};
  for (NodeEntry entry : known) {
    const EndedProcess* process = find(ended, entry.name);
    const bool runs = entry.state == NodeState::kRunning;
    if (process != nullptr && (runs || process->end.signal != 0)) {
      RETURN_IF_ERROR(nodes.set(entry_of(*process)));
    } else if (process == nullptr && runs) {
      entry.state = NodeState::kDead;
      entry.cause = fmt::format("lost with the head, which {}", head->end.text());
      RETURN_IF_ERROR(nodes.set(entry));
    }
  }
  // Those that never reached the head.
  for (const EndedProcess& process : ended) {
    const bool is_known = std::any_of(known.begin(), known.end(), [&](const NodeEntry& entry) {
      return entry.name == process.name;
    });
    if (!is_known) RETURN_IF_ERROR(nodes.set(entry_of(process)));
  }
  return {};
}

}  // namespace troupe::launch
