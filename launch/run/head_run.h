#pragma once

// A whole run in this process, or what of a run over several processes is its head: data, state,
// actors, signals, and what stays in the run's folder.

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/topology_file.h"
#include "launch/folder/run_folder.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "telemetry/history.h"
#include "telemetry/page/page_asset.h"

namespace troupe::launch {

struct HeadRunRequest {
  config::LoadedTopology loaded;
  // Members that compute in other processes; 0: everything is in this one.
  std::uint32_t members = 0;
  // Those of them that somebody starts on this host anyway, by name.
  std::vector<std::string> members_here;
  // The starter of the others: "Slurm step 12.0"; "": people have to be told how.
  std::string others_of;
  // Where it waits for them: see ZmqWireOptions::listen.
  std::string listen;
  bool trace = false;   // written although nothing failed
  bool resume = false;  // go on from the newest good checkpoint of the folder
  // Take the place of a head that was lost, of members that may still train. With resume.
  bool returns = false;
  // A metrics.jsonl: workers that take turns take them in the order of that run; "": in any.
  std::string order;
  std::string data_folder;  // synthetic showers and indices, shared by runs
  std::string version;      // of this program
  // Everything that the run tells goes into it; null: nowhere but into files. Lines of the log are
  // the caller's to give it.
  std::shared_ptr<telemetry::History> history;
  std::span<const telemetry::PageAsset> page;  // files of the page that shows the history
  // Given the summary where this ends the process: by a signal before the run has begun, on a
  // thread of its own, or by a handler that has not returned. May be null.
  std::function<void(const std::string& summary_json)> last_words;
  std::FILE* progress = nullptr;  // null: silent
  bool progress_on_terminal = false;
  // A turn of a large model can take tens of seconds; a stop waits for the one that runs.
  runtime::Duration shutdown_deadline = std::chrono::minutes(5);
};

struct HeadRunResult {
  std::string summary_json;             // one object, as in summary.json
  std::string table;                    // data against generated, text; empty without validation
  std::optional<runtime::Error> error;  // the run failed after it had begun
  int signal = 0;                       // it was stopped by this signal
  // From where --resume goes on: the run's folder, or another if the state could not be saved in
  // it.
  std::string resume_from;
  // Nodes of pools that are still there, and how people get rid of them; "": there are none.
  std::string nodes_left;

  // The process is to end with it.
  int exit_code() const {
    if (error) return runtime::exit_code(error->kind);
    return signal == 0 ? 0 : 128 + signal;
  }
};

// Runs the topology to its end, a signal or a failure. On the first SIGINT, SIGTERM or SIGHUP the
// step in flight is abandoned and the last committed state saved; a second one ends the process at
// once, and so does the first before the run has begun, when the folder is discarded. SIGUSR1
// writes a checkpoint. Must be called before other threads are started.
//
// An Error comes back when the run could not begin (data, checkpoint, model). When an actor's
// handler has not returned by the deadline of a stop, this writes the summary and ends the process
// with the error's exit code.
runtime::Result<HeadRunResult> run_locally(const HeadRunRequest& request, RunFolder& folder,
                                           runtime::Disk& disk, runtime::Log& log);

}  // namespace troupe::launch
