#include "launch/folder/nodes_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "config/plan.h"
#include "runtime/base/host_name.h"
#include "runtime/base/json_writer.h"
#include "telemetry/watch/run_files.h"

namespace troupe::launch {
namespace {

using runtime::Result;
using telemetry::NodeFacts;

bool is_same(const NodeFacts& a, const NodeFacts& b) {
  const auto all = [](const NodeFacts& node) {
    return std::tie(node.name, node.host, node.pid, node.role, node.state, node.cause, node.device);
  };
  return all(a) == all(b);
}

NodeFacts facts_of(const EndedProcess& ended) {
  const bool well = ended.end == ChildEnd{};
  NodeFacts node;
  node.name = ended.name;
  node.host = runtime::host_name();
  node.pid = static_cast<std::uint64_t>(ended.pid);
  if (ended.name == config::kHeadNode) node.role = "head";
  node.state = well ? kEnded : kDead;
  if (!well) node.cause = ended.end.text();
  return node;
}

template <class Item>
const Item* find(const std::vector<Item>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Item& item) { return item.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

NodesFile::NodesFile(std::string path, runtime::Disk& disk, WallClock now)
    : path_(std::move(path)), disk_(disk), now_(std::move(now)) {}

void NodesFile::load() {
  std::ifstream file(path_, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::scoped_lock lock(mutex_);
  for (telemetry::ListedNode& node : telemetry::read_nodes_file(text))
    nodes_.push_back(std::move(node));
}

Result<void> NodesFile::end_all() {
  const std::scoped_lock lock(mutex_);
  for (telemetry::ListedNode& node : nodes_) {
    if (node.facts.state != kRunning) continue;
    node.facts.state = kEnded;
    node.since = time();
  }
  return write();
}

std::vector<NodeFacts> NodesFile::nodes() const {
  const std::scoped_lock lock(mutex_);
  std::vector<NodeFacts> nodes;
  for (const telemetry::ListedNode& node : nodes_) nodes.push_back(node.facts);
  return nodes;
}

Result<void> NodesFile::set(NodeFacts node) {
  const std::scoped_lock lock(mutex_);
  const auto found = std::find_if(
      nodes_.begin(), nodes_.end(),
      [&](const telemetry::ListedNode& known) { return known.facts.name == node.name; });
  if (found == nodes_.end()) {
    nodes_.push_back({std::move(node), time()});
    return write();
  }
  NodeFacts& known = found->facts;
  // A change that names no process is one of the process that is known.
  if (node.pid == 0) {
    node.host = known.host;
    node.pid = known.pid;
    if (node.device.empty()) node.device = known.device;
  }
  if (is_same(known, node)) return written_ ? Result<void>{} : write();
  if (known.state != node.state) found->since = time();
  known = std::move(node);
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
  for (const telemetry::ListedNode& node : nodes_) nodes.push_back(runtime::to_json(node));
  const std::string text = fmt::format("[{}]\n", fmt::join(nodes, ",\n "));
  auto result = disk_.replace(path_, std::as_bytes(std::span{text}));
  written_ = result.ok();
  return result;
}

Result<void> settle_nodes(const std::string& path, const std::vector<EndedProcess>& ended) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return {};
  runtime::FileDisk disk;
  NodesFile file(path, disk);
  file.load();
  const std::vector<NodeFacts> known = file.nodes();
  const EndedProcess* head = find(ended, config::kHeadNode);
  const NodeFacts* told_head = find(known, config::kHeadNode);
  // The folder may hold another run, which this one's head has refused to touch.
  const bool is_ours = head != nullptr && told_head != nullptr &&
                       told_head->pid == static_cast<std::uint64_t>(head->pid);
  if (!is_ours) return {};
  for (NodeFacts node : known) {
    const EndedProcess* process = find(ended, node.name);
    const bool runs = node.state == kRunning;
    if (process != nullptr && (runs || process->end.signal != 0)) {
      RETURN_IF_ERROR(file.set(facts_of(*process)));
    } else if (process == nullptr && runs) {
      node.state = kDead;
      node.cause = fmt::format("lost with the head, which {}", head->end.text());
      RETURN_IF_ERROR(file.set(std::move(node)));
    }
  }
  // Those that never reached the head.
  for (const EndedProcess& process : ended) {
    if (find(known, process.name) == nullptr) RETURN_IF_ERROR(file.set(facts_of(process)));
  }
  return {};
}

}  // namespace troupe::launch
