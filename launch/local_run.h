#pragma once

// A whole run in this process: data, state, actors, signals, and what stays in the run's folder.

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "config/topology.h"
#include "launch/run_folder.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/base/log.h"
#include "runtime/plan.h"

namespace troupe::launch {

struct LocalRunRequest {
  config::Topology topology;
  std::string effective_topology;  // as text, for RUN/topology.yaml and the checkpoints
  runtime::Hash128 topology_hash;
  bool resume = false;            // go on from the newest good checkpoint of the folder
  std::string data_folder;        // synthetic showers and indices, shared by runs
  std::FILE* progress = nullptr;  // null: silent
  bool progress_on_terminal = false;
};

struct LocalRunResult {
  std::string summary_json;             // one object, as in summary.json
  std::string table;                    // data against generated, text; empty without validation
  std::optional<runtime::Error> error;  // the run failed after it had begun
  int signal = 0;                       // it was stopped by this signal
};

// Runs the topology to its end, a signal or a failure. On the first SIGINT or SIGTERM the step in
// flight is abandoned and the last committed state saved; a second one ends the process at once.
// SIGUSR1 writes a checkpoint. Must be called before other threads are started. An Error comes back
// when the run could not begin (data, checkpoint, model).
runtime::Result<LocalRunResult> run_locally(const LocalRunRequest& request, const RunFolder& folder,
                                            runtime::Disk& disk, runtime::Log& log);

// What a run of the topology would be made of, without opening any data.
struct LocalBounds {
  runtime::Plan plan;
  std::int64_t message_bytes = 0;  // of all links' byte credits
  std::int64_t arena_bytes = 0;    // activations and scratch of one replica
  std::int64_t state_bytes = 0;    // weights, moving statistics and optimiser of one replica
};

// Errors (kTopology): networks that do not fit each other, a plan that cannot run.
runtime::Result<LocalBounds> local_bounds(const config::Topology& topology);

}  // namespace troupe::launch
