#pragma once

// nodes.json of a run: every node with where it is and what became of it, kept current.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "launch/processes/child_process.h"
#include "runtime/base/clock.h"
#include "runtime/base/disk.h"
#include "runtime/base/error.h"
#include "telemetry/watch/run_files.h"

namespace troupe::launch {

// The name of the node of a run in one process.
inline constexpr const char* kLocalNode = "local";

// States of a node (telemetry::NodeFacts).
inline constexpr const char* kRunning = "running";  // it takes part
// It ended as it should; `cause` says why, if that was before the run's end.
inline constexpr const char* kEnded = "ended";
inline constexpr const char* kDead = "dead";  // it was lost; `cause` says how that was noticed

// Any thread. One at a time per file: what another wrote is replaced, unless load() has taken it
// over.
class NodesFile {
 public:
  static constexpr const char* kName = "nodes.json";

  // The time of day, for people; handed in as all time is.
  using WallClock = std::function<runtime::WallTime()>;

  // Nothing is written before the first set(). `disk` must outlive this.
  NodesFile(
      std::string path, runtime::Disk& disk, WallClock now = [] { return runtime::wall_now(); });

  // Takes over the nodes the file tells of; what cannot be understood of it is left out.
  void load();
  // Sets the node of that name, or adds it below the others; writes the file if that changed
  // anything, such that a reader sees the old content or the new, never a part. A node without a
  // pid keeps the host, pid and device that are known. kData: it could not be written; the node is
  // set all the same, and the next change writes it too.
  runtime::Result<void> set(telemetry::NodeFacts node);
  // Writes the file although nothing has changed: it was removed.
  runtime::Result<void> write_again();
  // Says of all nodes that are not dead yet that they have ended.
  runtime::Result<void> end_all();
  // A copy of all nodes, in the order in which they came.
  std::vector<telemetry::NodeFacts> nodes() const;

 private:
  std::chrono::sys_time<std::chrono::milliseconds> time() const;
  // With the mutex held.
  runtime::Result<void> write();

  const std::string path_;
  runtime::Disk& disk_;
  const WallClock now_;
  mutable std::mutex mutex_;
  std::vector<telemetry::ListedNode> nodes_;
  bool written_ = false;  // whether the file says what is known
};

// A process of the run that its supervisor has seen end.
struct EndedProcess {
  std::string name;  // "head", "member.0"
  pid_t pid = 0;
  ChildEnd end;
};

// When all processes of this machine have ended: leaves no node of the file running. The head keeps
// the file while it lives; this puts right what it could not see any more. A node that was killed
// is dead of it, whatever was known of it; about all others the head knows better, if it has seen
// their end. Nodes of other hosts that the head has not outlived are lost with it.
//
// Nothing happens when there is no file, or one that another head wrote. kData: it cannot be
// written.
runtime::Result<void> settle_nodes(const std::string& path, const std::vector<EndedProcess>& ended);

}  // namespace troupe::launch
