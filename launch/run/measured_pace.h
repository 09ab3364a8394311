#pragma once

// How fast the workers of a run were, read from its folder, or measured by a short run here.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/topology_file.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe::launch {

struct MeasuredPace {
  // Micro-batches that a worker of no pool computes per second; where there was none, any worker.
  double speed = 0.0;
  std::map<std::string, double> pool_speeds;  // likewise, of pools that had workers
  std::vector<double> iterations;             // seconds of each that was timed, in their order
  double busy_seconds = 0.0;  // of a mean iteration: in which a worker computed or waited for data
  std::uint32_t workers = 1;  // that shared these iterations
  std::uint64_t micro_batches = 1;  // of an iteration
  std::uint64_t iterations_per_epoch = 1;
  // That a member of such a worker gets through in a ring; 0: it was not measured.
  double ring_bytes_per_second = 0.0;
  // The speed of the slowest kind of workers.
  double slowest() const {
    double least = speed;
    for (const auto& [pool, its] : pool_speeds) least = std::min(least, its);
    return least;
  }
};

// Reads the run's metrics.jsonl. Times the newest iterations that the same members made, but for
// their first. kUsage: a worker of that run does other work for a micro-batch than one of
// `planned`. kData: it has made too few, or is no run.
runtime::Result<MeasuredPace> read_pace(const std::string& folder, const config::Topology& planned);

struct PaceMeasurement {
  std::uint64_t iterations = 8;  // that are timed, from 1
  std::string data_folder;       // for synthetic showers and indices
  std::string version;           // of this program
  std::FILE* progress = nullptr;
  bool progress_on_terminal = false;
};
struct PaceMeasured {
  std::optional<MeasuredPace> pace;  // none: a signal ended it
  int signal = 0;
};

// Trains the topology in this process for a moment, with neither validation nor a page, in a
// folder that is removed. Must be called before other threads are started.
runtime::Result<PaceMeasured> measure_pace(const config::LoadedTopology& loaded,
                                           const PaceMeasurement& how, runtime::Log& log);

}  // namespace troupe::launch
