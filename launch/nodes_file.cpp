#include "launch/nodes_file.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "config/yaml_value.h"
#include "runtime/base/host_name.h"
#include "runtime/base/json_text.h"
#include "runtime/base/utc_time.h"

namespace troupe::launch {
namespace {

using runtime::json_string;
using runtime::Result;

// "" where the node has no such field.
std::string field(const config::YamlValue& node, std::string_view name) {
  const config::YamlValue* value = node.find(name);
  return value != nullptr && value->is_scalar() ? value->scalar : std::string();
}

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
  config::Problems problems;
  const config::YamlValue list = config::parse_yaml(text, path_, problems);  // JSON is YAML
  const std::scoped_lock lock(mutex_);
  for (const config::YamlValue& node : list.items) {
    NodeEntry entry;
    entry.name = field(node, "name");
    if (entry.name.empty()) continue;
    entry.host = field(node, "host");
    entry.pid = static_cast<pid_t>(std::strtol(field(node, "pid").c_str(), nullptr, 10));
    entry.role = field(node, "role");
    entry.state = state_of(field(node, "state"));
    entry.cause = field(node, "cause");
    const auto since = runtime::read_utc(field(node, "since"));
    nodes_.push_back({std::move(entry), since ? runtime::WallTime(*since) : runtime::WallTime{}});
  }
}

Result<void> NodesFile::end_all() {
  const std::scoped_lock lock(mutex_);
  for (Known& node : nodes_) {
    if (node.entry.state != NodeState::kRunning) continue;
    node.entry.state = NodeState::kEnded;
    node.since = now_();
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
    nodes_.push_back({entry, now_()});
  } else if (found->entry == entry) {
    return written_ ? Result<void>{} : write();
  } else {
    if (found->entry.state != entry.state) found->since = now_();
    found->entry = entry;
  }
  return write();
}

Result<void> NodesFile::write_again() {
  const std::scoped_lock lock(mutex_);
  return write();
}

Result<void> NodesFile::write() {
  std::vector<std::string> nodes;
  for (const auto& [entry, since] : nodes_) {
    const std::string cause = entry.cause.empty()
                                  ? std::string()
                                  : fmt::format(R"(,"cause":{})", json_string(entry.cause));
    nodes.push_back(fmt::format(
        R"({{"name":{},"host":{},"pid":{},"role":{},"state":"{}","since":"{}"{}}})",
        json_string(entry.name), json_string(entry.host), entry.pid, json_string(entry.role),
        word(entry.state), runtime::utc_text(std::chrono::floor<std::chrono::milliseconds>(since)),
        cause));
  }
  const std::string text = fmt::format("[{}]\n", fmt::join(nodes, ",\n "));
  auto result = disk_.replace(path_, std::as_bytes(std::span{text}));
  written_ = result.ok();
  return result;
}

}  // namespace troupe::launch
