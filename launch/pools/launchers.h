#pragma once

// The launchers that topologies name: Slurm, ssh, Kubernetes, and any command.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/launcher.h"
#include "config/topology.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// How a node of a pool joins the run.
struct JoinPlan {
  std::string run;        // the run's name towards launchers: 8 hexadecimal digits
  std::string program;    // path of this program
  std::string address;    // of the head, with its key
  std::string folder;     // for scripts, tokens and logs of nodes; made when it is needed
  std::string journal{};  // the run's, absolute (launch/pools/pool_journal.h)
  // Where runs with the same hosts note which of them they use; "": this one knows nothing of
  // others.
  std::string hosts{};
};

// Enrolment::launched of a node's members; and the node in it, "" where the run is another one.
std::string launch_mark(const JoinPlan& plan, const std::string& node);
std::string launched_node(const std::string& run, std::string_view mark);

// The command that a node runs, word by word. `token_file`: "" for a run without keys, "-" for
// standard input.
std::vector<std::string> join_words(const JoinPlan& plan, const config::PoolSection& pool,
                                    const std::string& node, const std::string& token_file);

// kUsage: a command of the pool, or its `pod` file, cannot be understood.
runtime::Result<std::shared_ptr<actors::Launcher>> make_launcher(const config::PoolSection& pool,
                                                                 const JoinPlan& plan);

// The words of a command of the pool. kUsage: a quote does not end.
runtime::Result<std::vector<std::string>> words_in(const config::PoolSection& pool,
                                                   const std::string& command);

// Asks the pool's command `price` for what a node costs for an hour now; null where it has none.
// Takes 5 s at most. kUsage: the command cannot be understood.
runtime::Result<std::function<runtime::Result<double>()>> make_price(
    const config::PoolSection& pool);

// Whether a tool's id of a node can be kept and shown: 1 to 256 bytes, no control characters.
bool is_tool_id(std::string_view id);

// Launcher::stop() of each on a thread of its own, for launchers that allow it.
std::vector<runtime::Result<void>> stop_at_once(actors::Launcher& launcher,
                                                const std::vector<actors::ListedNode>& nodes);

// One per kind.
std::shared_ptr<actors::Launcher> make_slurm_launcher(const config::PoolSection& pool,
                                                      const JoinPlan& plan);
std::shared_ptr<actors::Launcher> make_ssh_launcher(const config::PoolSection& pool,
                                                    const JoinPlan& plan);
runtime::Result<std::shared_ptr<actors::Launcher>> make_kubernetes_launcher(
    const config::PoolSection& pool, const JoinPlan& plan);
runtime::Result<std::shared_ptr<actors::Launcher>> make_command_launcher(
    const config::PoolSection& pool, const JoinPlan& plan);

}  // namespace troupe::launch
