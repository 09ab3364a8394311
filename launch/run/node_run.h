#pragma once

// The node of a run that this process carries out: what the head, a member and a run in one process
// have in common.

#include <optional>
#include <string>

#include "actors/spawn.h"
#include "launch/run/run_signals.h"
#include "launch/run/training_setup.h"
#include "runtime/base/clock.h"
#include "runtime/base/disk.h"
#include "runtime/base/log.h"
#include "runtime/node/node.h"
#include "runtime/transport/wire.h"
#include "runtime/transport/wire_types.h"
#include "telemetry/node_sample.h"

namespace troupe::launch {

class NodeRun {
 public:
  // Makes the node, and sets the hooks of the actors that tell of it.
  // `wire` null: it is the only one, and `gate` means nothing. All others outlive it.
  NodeRun(const TrainingSetup& setup, actors::NodeParts& parts, runtime::NodeOptions options,
          runtime::GateOptions gate, runtime::Wire* wire, const runtime::Clock& clock,
          runtime::Log& log);
  NodeRun(const NodeRun&) = delete;
  NodeRun& operator=(const NodeRun&) = delete;

  runtime::Node& node() { return *node_; }
  // Writes what its actors did lately, on its own clock, in the Trace Event format that Perfetto
  // (ui.perfetto.dev) and chrome://tracing open (telemetry/trace/trace_json.h). Makes the file's
  // folder too; the node is called as the file is, without ".json". A file that cannot be written
  // is a line in the log.
  void leave_trace(const std::string& path, runtime::Disk& disk) const;

 private:
  runtime::Log& log_;
  const runtime::WireTypes types_;
  std::optional<runtime::Node> node_;
};

// A running node in a few numbers.
// Samples the process (/proc/self), the node's actors, and those links that begin on it and have
// been used. Some 0.1 ms of a small node. Any thread, and from a handler of an actor of the node;
// also before the node begins and after it has ended. A number that cannot be found out is 0.
telemetry::NodeSample sample_node(const std::string& name, const runtime::Node& node);

// Says how many lines of the file of metrics found no room, besides the steps, which the Monitor
// counts, and samples, of which no file lacks a line.
void tell_dropped(const std::vector<runtime::LinkStats>& links, const std::string& path,
                  runtime::Log& log);

// The way out when handlers do not return: threads of end.abandoned still run, on objects that must
// not go away. Says so and ends the process with the exit code of end.error.
[[noreturn]] void abandon(const runtime::NodeEnd& end, const runtime::Log& log);

}  // namespace troupe::launch
