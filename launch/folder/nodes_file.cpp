#include "launch/folder/nodes_file.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/host_name.h"
#include "runtime/base/json_writer.h"
#include "telemetry/listed_node.h"
#include "telemetry/watch/run_files.h"

namespace troupe::launch {
namespace {

using runtime::Result;

NodeState state_of(const std::string& text) {
  for (const NodeState state : {NodeState::kRunning, NodeState::kEnded}) {
    if (text == word(state)) return state;
  }
  return NodeState::kDead;
}

}  // namespace

const char* word(NodeState state) {
  switch (state) {
    case NodeState::kRunning:
      return "running";
    case NodeState::kEnded:
      return "ended";
    case NodeState::kDead:
      return "dead";
  }
  return "?";
}

std::string host_name() { return runtime::host_name(); }

NodesFile::NodesFile(std::string path, runtime::Disk& disk, WallClock now)
    : path_(std::move(path)), disk_(disk), now_(std::move(now)) {}

void NodesFile::load() {
  std::ifstream file(path_, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::scoped_lock lock(mutex_);
  for (const telemetry::ListedNode& node : telemetry::read_nodes_file(text)) {
    const telemetry::NodeFacts& facts = node.facts;
    NodeEntry entry{
        facts.name, facts.host, static_cast<pid_t>(facts.pid), facts.role, state_of(facts.state),
        facts.cause};
    nodes_.push_back({std::move(entry), node.since});
  }
}

Result<void> NodesFile::end_all() {
  const std::scoped_lock lock(mutex_);
  for (Known& node : nodes_) {
    if (node.entry.state != NodeState::kRunning) continue;
    node.entry.state = NodeState::kEnded;
    node.since = time();
  }
  return write();
}

std::vector<NodeEntry> NodesFile::entries() const {
  const std::scoped_lock lock(mutex_);
  std::vector<NodeEntry> entries;
  for (const Known& node : nodes_) entries.push_back(node.entry);
  return entries;
}

Result<void> NodesFile::set(NodeEntry entry) {
  const std::scoped_lock lock(mutex_);
  const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                  [&](const Known& node) { return node.entry.name == entry.name; });
  if (found != nodes_.end() && entry.pid == 0) {
    entry.host = found->entry.host;
    entry.pid = found->entry.pid;
  }
  if (found == nodes_.end()) {
    nodes_.push_back({entry, time()});
  } else if (found->entry == entry) {
    return written_ ? Result<void>{} : write();
  } else {
    if (found->entry.state != entry.state) found->since = time();
    found->entry = entry;
  }
  return write();
}

Result<void> NodesFile::write_again() {
  const std::scoped_lock lock(mutex_);
  return write();
}

std::chrono::sys_time<std::chrono::milliseconds> NodesFile::time() const {
  return std::chrono::floor<std::chrono::milliseconds>(now_());
}

Result<void> NodesFile::write() {
  std::vector<std::string> nodes;
  for (const auto& [entry, since] : nodes_) {
    telemetry::NodeFacts facts{entry.name,        entry.host,
                               entry.role,        static_cast<std::uint64_t>(entry.pid),
                               word(entry.state), entry.cause};
    nodes.push_back(runtime::to_json(telemetry::ListedNode{std::move(facts), since}));
  }
  const std::string text = fmt::format("[{}]\n", fmt::join(nodes, ",\n "));
  auto result = disk_.replace(path_, std::as_bytes(std::span{text}));
  written_ = result.ok();
  return result;
}

}  // namespace troupe::launch
