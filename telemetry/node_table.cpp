#include "telemetry/node_table.h"

#include <algorithm>

namespace troupe::telemetry {
namespace {

bool is_up(const NodeState& node) { return node.state == "running" || node.state == "joining"; }

void come_to_rest(NodeState& node) {
  node.busy_cores = node.cores = node.sent_per_second = node.received_per_second = 0.0;
}

// Bytes a second. The numbers may be any, and their difference more than 64 bits hold.
double rate(std::int64_t before, std::int64_t now, double seconds) {
  return (static_cast<double>(now) - static_cast<double>(before)) / seconds;
}

}  // namespace

void NodeTable::take(const NodeFacts& told, double time) {
  if (told.name.empty()) return;
  if (!nodes_.contains(told.name) && nodes_.size() >= most_ && !forget_one()) return;
  NodeState& node = nodes_[told.name];
  if (node.state != told.state || (told.pid != 0 && node.pid != told.pid)) node.since = time;
  node.name = told.name;
  node.role = told.role;
  node.state = told.state;
  node.cause = told.cause;
  if (!told.host.empty()) node.host = told.host;
  if (told.pid != 0) node.pid = told.pid;
  if (!is_up(node)) come_to_rest(node);
}

bool NodeTable::forget_one() {
  auto oldest = nodes_.end();
  for (auto node = nodes_.begin(); node != nodes_.end(); ++node) {
    if (is_up(node->second)) continue;
    if (oldest == nodes_.end() || node->second.since < oldest->second.since) oldest = node;
  }
  if (oldest == nodes_.end()) return false;
  nodes_.erase(oldest);
  return true;
}

// Rates need two samples of one process, so the first sample of a process gives none.
bool NodeTable::take(const NodeSample& sample, double time, double clock_error) {
  const auto found = nodes_.find(sample.node);
  if (found == nodes_.end() || !is_up(found->second)) return false;
  NodeState& node = found->second;
  const double passed = time - node.sampled;
  const NodeSample& before = node.sample;
  // A process that was started anew under this name begins from 0 again.
  const bool goes_on =
      node.sampled > 0.0 && passed > 0.0 && sample.cpu_seconds >= before.cpu_seconds &&
      sample.sent_bytes >= before.sent_bytes && sample.received_bytes >= before.received_bytes;
  if (goes_on) {
    node.cores = (sample.cpu_seconds - before.cpu_seconds) / passed;
    node.sent_per_second = rate(before.sent_bytes, sample.sent_bytes, passed);
    node.received_per_second = rate(before.received_bytes, sample.received_bytes, passed);
  }
  node.sample = sample;
  node.sampled = time;
  node.clock_error = clock_error;
  return goes_on;
}

void NodeTable::set_busy_cores(std::string_view name, double cores) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end() || !is_up(found->second)) return;
  found->second.busy_cores = std::max(cores, 0.0);
}

void NodeTable::end_all() {
  for (auto& [name, node] : nodes_) {
    if (!is_up(node)) continue;
    node.state = "ended";
    come_to_rest(node);
  }
}

std::uint64_t NodeTable::computing() const {
  return static_cast<std::uint64_t>(
      std::count_if(nodes_.begin(), nodes_.end(), [](const auto& entry) {
        const NodeState& node = entry.second;
        return is_up(node) && node.role != "head" && node.role != "pool";
      }));
}

double NodeTable::busy_cores() const {
  double sum = 0.0;
  for (const auto& [name, node] : nodes_) sum += node.busy_cores;
  return sum;
}

std::uint64_t NodeTable::dropped() const {
  std::uint64_t sum = 0;
  for (const auto& [name, node] : nodes_) {
    for (const LinkSample& link : node.sample.links) {
      sum += static_cast<std::uint64_t>(std::max<std::int64_t>(link.dropped, 0));
    }
  }
  return sum;
}

std::vector<NodeState> NodeTable::all() const {
  std::vector<NodeState> all;
  for (const auto& [name, node] : nodes_) all.push_back(node);
  return all;
}

std::optional<NodeState> NodeTable::find(std::string_view name) const {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return std::nullopt;
  return found->second;
}

}  // namespace troupe::telemetry
