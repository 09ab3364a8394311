#pragma once

// nodes.json of a run: every node with where it is and what became of it, kept current.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/disk.h"
#include "runtime/base/error.h"

namespace troupe::launch {

enum class NodeState : std::uint8_t {
  kRunning,  // it takes part
  kEnded,    // it ended as it should; `cause` says why, if that was before the run's end
  kDead,     // it was lost; `cause` says how that was noticed
};

// "running", "ended", "dead".
const char* word(NodeState state);

struct NodeEntry {
  std::string name;  // unique in the run: "head", "member.0"
  std::string host;
  pid_t pid = 0;
  std::string role;  // "all", "head", "member"
  NodeState state = NodeState::kRunning;
  std::string cause = {};  // such as "was killed by signal 9 (Killed)"; "" while it runs
  bool operator==(const NodeEntry&) const = default;
};

// Of a run in one process.
inline constexpr const char* kLocalNode = "local";

// The name of this machine; "" if it has none.
std::string host_name();

// Any thread. One at a time per file: what another wrote is replaced, unless load() has taken it
// over.
class NodesFile {
 public:
  // The time of day, for people; handed in as all time is.
  using WallClock = std::function<runtime::WallTime()>;

  // Nothing is written before the first set(). `disk` must outlive this.
  NodesFile(
      std::string path, runtime::Disk& disk, WallClock now = [] { return runtime::wall_now(); });

  // Takes over the nodes the file tells of; what cannot be understood of it is left out.
  void load();
  // Sets the entry of that name, or adds it below the others; writes the file if that changed
  // anything, such that a reader sees the old content or the new, never a part. An entry without a
  // pid keeps the host and pid that are known. kData: it could not be written; the entry is set all
  // the same, and the next change writes it too.
  runtime::Result<void> set(NodeEntry entry);
  // Writes the file although nothing has changed: it was removed.
  runtime::Result<void> write_again();
  // Says of all nodes that are not dead yet that they have ended.
  runtime::Result<void> end_all();
  // A copy of all entries, in the order in which they came.
  std::vector<NodeEntry> entries() const;

 private:
  struct Known {
    NodeEntry entry;
    std::chrono::sys_time<std::chrono::milliseconds> since;  // of its state
  };
  std::chrono::sys_time<std::chrono::milliseconds> time() const;
  // With the mutex held.
  runtime::Result<void> write();

  const std::string path_;
  runtime::Disk& disk_;
  const WallClock now_;
  mutable std::mutex mutex_;
  std::vector<Known> nodes_;
  bool written_ = false;  // whether the file says what is known
};

}  // namespace troupe::launch
