#pragma once

// The nodes of a run, as the page's table shows them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/node_sample.h"
#include "telemetry/record.h"

namespace troupe::telemetry {

// Times are seconds since 1970.
struct NodeState {
  std::string name, host, role;
  std::uint64_t pid = 0;
  std::string state;  // "joining", "running", "ended", "dead"
  std::string cause;
  double since = 0.0;                // when the state began
  double cores = 0.0;                // busy between the last two samples
  double busy_cores = 0.0;           // by its record, while it is up
  double sent_per_second = 0.0;      // bytes
  double received_per_second = 0.0;  // bytes
  double clock_error = 0.0;          // seconds its clock may be off, as measured; 0: the head's
  NodeSample sample;                 // the newest
  double sampled = 0.0;              // when that came; 0: none has yet
};

// One thread at a time.
class NodeTable {
 public:
  // Beyond `most` a node takes the place of the one that was over first; where all are up it is
  // left out.
  explicit NodeTable(std::size_t most) : most_(most) {}

  // A node has changed its state, or was not known before.
  void take(const NodeFacts& facts, double time);
  // What a node tells of itself; it is left out where the node is not up. `clock_error`: see
  // NodeState. True: the node's rates are those since the sample before.
  bool take(const NodeSample& sample, double time, double clock_error);
  // How many cores a node keeps busy, by its record. It counts as long as the node is up.
  void set_busy_cores(std::string_view node, double cores);
  // All that were up have ended.
  void end_all();

  // How many nodes are up and compute; the head of members does not, nor does a pool's node itself.
  std::uint64_t computing() const;
  double busy_cores() const;
  // Metrics for which links had no room.
  std::uint64_t dropped() const;
  // In the order of their names.
  std::vector<NodeState> all() const;
  std::optional<NodeState> find(std::string_view name) const;

 private:
  // False: all nodes are up.
  bool forget_one();

  std::size_t most_;
  std::map<std::string, NodeState, std::less<>> nodes_;
};

}  // namespace troupe::telemetry
