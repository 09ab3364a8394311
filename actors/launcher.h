#pragma once

// Starts nodes and stops them through what people have for it: ssh, a batch system, a command.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace troupe::actors {

struct NodeOrder {
  std::string name;           // "hpc.3", of one node of the run ever
  std::uint32_t workers = 1;  // members that it carries
  std::string token;          // by which they may join; "": the run has no keys
};

// A node as the tool tells of it.
struct ListedNode {
  std::string name;
  std::string id;       // the tool's; "": it tells none
  bool queued = false;  // it waits for a machine
  std::string where{};  // the machine, or why it has none yet, for people
  bool boots = false;   // it has a machine, which is not up yet; the tool sees to that
};

// One thread. Each call may take as long as the tool's deadline. Errors are kUsage or kLostPeers,
// with what the tool says and what to do.
class Launcher {
 public:
  virtual ~Launcher() = default;
  // Under which id the node is looked for, as far as that is known before it is asked for, or after
  // start() has failed; "": it is not. Where the tool leaves it to us, this chooses it.
  virtual std::string id_for(const std::string& /*name*/) { return ""; }
  // Returns the tool's id of the node. After a kLostPeers it may have been started all the same;
  // after any other Error it was not.
  virtual runtime::Result<std::string> start(const NodeOrder& order) = 0;
  // A node that an earlier Launcher has started, before all other calls.
  virtual void adopt(const std::string& /*name*/, const std::string& /*id*/) {}
  // Whether list() can tell.
  virtual bool lists() const { return true; }
  // The nodes of this run that the tool knows and that have not ended; a node that was started
  // twice is there twice.
  virtual runtime::Result<std::vector<ListedNode>> list() = 0;
  // The last that a node has written before it was gone, in one line, for people; "": not known.
  virtual std::string last_words(const std::string& /*name*/) { return ""; }
  // Asks it to end, and makes it where asking does not help. `id`: "" where it is not known. A node
  // that is gone is no error.
  virtual runtime::Result<void> stop(const std::string& name, const std::string& id) = 0;
  // The same for several, of which each has its result; faster, where the tool can.
  virtual std::vector<runtime::Result<void>> stop_all(const std::vector<ListedNode>& nodes) {
    std::vector<runtime::Result<void>> results;
    for (const ListedNode& node : nodes) results.push_back(stop(node.name, node.id));
    return results;
  }
};

// Nodes that are stopped by one call. Each may take as long as the tool's deadline.
inline constexpr std::size_t kMostStopsAtOnce = 16;

}  // namespace troupe::actors
