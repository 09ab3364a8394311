#pragma once

// A whole run in this process, or what of a run over several processes is its head: data, state,
// actors, signals, and what stays in the run's folder.

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "config/topology.h"
#include "config/topology_file.h"
#include "launch/run_folder.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/base/log.h"
#include "runtime/plan.h"

namespace troupe::launch {

struct LocalRunRequest {
  config::Topology topology;
  // Members that compute in other processes; 0: everything is in this one.
  std::uint32_t members = 0;
  // Those of them that somebody starts on this host anyway, by name.
  std::vector<std::string> members_here;
  // Where it waits for them: see ZmqWireOptions::listen.
  std::string listen;
  std::string effective_topology;  // as text, for RUN/topology.yaml and the checkpoints
  runtime::Hash128 topology_hash;
  bool resume = false;            // go on from the newest good checkpoint of the folder
  std::string data_folder;        // synthetic showers and indices, shared by runs
  std::FILE* progress = nullptr;  // null: silent
  bool progress_on_terminal = false;
  // A turn of a large model can take tens of seconds; a stop waits for the one that runs.
  runtime::Duration shutdown_deadline = std::chrono::minutes(5);
};

struct LocalRunResult {
  std::string summary_json;             // one object, as in summary.json
  std::string table;                    // data against generated, text; empty without validation
  std::optional<runtime::Error> error;  // the run failed after it had begun
  int signal = 0;                       // it was stopped by this signal
};

// Runs the topology to its end, a signal or a failure. On the first SIGINT, SIGTERM or SIGHUP the
// step in flight is abandoned and the last committed state saved; a second one ends the process at
// once.
// SIGUSR1 writes a checkpoint. Must be called before other threads are started. An Error comes back
// when the run could not begin (data, checkpoint, model). When an actor's handler has not returned
// by the deadline of a stop, this writes the summary and ends the process with the error's exit
// code.
runtime::Result<LocalRunResult> run_locally(const LocalRunRequest& request, const RunFolder& folder,
                                            runtime::Disk& disk, runtime::Log& log);

// What a run of the topology would be made of, without opening any data; with members, of all nodes
// together but for what one process needs.
struct LocalBounds {
  runtime::Plan plan;
  std::int64_t message_bytes = 0;  // of all links' byte credits
  std::int64_t arena_bytes = 0;    // activations and scratch of one replica
  std::int64_t state_bytes = 0;    // weights, moving statistics and optimiser of one replica
  // Micro-batches of an iteration with their fakes and contributions, of all replicas together.
  std::int64_t iteration_bytes = 0;
  std::uint32_t replicas = 1;
};

// Errors (kTopology): networks that do not fit each other, links that cannot work, each at its
// place.
runtime::Result<LocalBounds> local_bounds(const config::LoadedTopology& loaded,
                                          std::uint32_t members = 0);

// Bytes this process may use: physical memory, or the limit set on its address space.
double usable_memory();

// kTopology when the replicas alone need more than `usable_bytes`: such a run would be ended by the
// system.
runtime::Result<void> check_memory(const LocalBounds& bounds, double usable_bytes);

}  // namespace troupe::launch
