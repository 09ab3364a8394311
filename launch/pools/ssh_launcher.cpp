// Nodes by ssh: one on each host at a time, a process that goes on when the connection ends. It is
// known by its mark, which stands on its command line.

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "launch/pools/launchers.h"
#include "launch/pools/shared_hosts.h"
#include "launch/processes/command.h"
#include "launch/processes/shell_word.h"

namespace troupe::launch {
namespace {

using actors::ListedNode;
using actors::NodeOrder;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

// How the script that starts a node ends before it has done so.
constexpr int kNoProgram = 127, kHasNode = 126;
// It says this before it starts the node. A connection that breaks may swallow it: whether the node
// is there then, list() tells, and where it is, no other starts.
constexpr std::string_view kBegun = "troupe begins";
constexpr std::string_view kMachine = "troupe-machine=";
constexpr const char* kCopy = ".cache/troupe/troupe";  // below the home folder there

class SshLauncher final : public actors::Launcher {
 public:
  SshLauncher(config::PoolSection pool, JoinPlan plan)
      : pool_(std::move(pool)),
        plan_(std::move(plan)),
        shared_(plan_.hosts, pool_.name, plan_.journal) {}

  // The next host that has no node, here or of another run that shares it. One that fails is the
  // last to be tried again.
  std::string id_for(const std::string& name) override {
    std::vector<std::string> free;
    for (const std::string& host : pool_.hosts) {
      const auto used = used_.find(host);
      if (used != used_.end() && used->second == name) return host;
      if (used == used_.end()) free.push_back(host);
    }
    std::ranges::stable_sort(free, {}, [&](const std::string& host) { return failures_[host]; });
    why_none_.clear();
    for (const std::string& host : free) {
      const auto taken = shared_.take(host);
      if (taken.ok()) return host;
      if (why_none_.empty()) why_none_ = ": " + taken.error().message;
    }
    return "";
  }

  Result<std::string> start(const NodeOrder& order) override {
    const std::string host = id_for(order.name);
    if (host.empty()) {
      return Error{ErrorKind::kUsage,
                   fmt::format("each of the {} hosts of pool {} has a node already{}",
                               pool_.hosts.size(), pool_.name, why_none_)};
    }
    used_[host] = order.name;
    silent_.erase(host);
    auto started = start_at(host, order, pool_);
    if (started.ok()) return host;
    ++failures_[host];
    // One that may run there keeps its host.
    if (started.error().kind != ErrorKind::kLostPeers) {
      used_.erase(host);
      shared_.leave(host);
    }
    return Error{started.error().kind, fmt::format("{}: {}", host, started.error().message)};
  }

  void adopt(const std::string& name, const std::string& id) override {
    if (id.empty()) return;
    used_[id] = name;
    (void)shared_.take(id);  // it has the node, whatever others say
  }

  // A host that does not answer keeps its node: it may be there. A node that is found by two names
  // of one host is one node, and has the name by which it was started.
  Result<std::vector<ListedNode>> list() override {
    std::vector<ListedNode> nodes, silent;
    std::map<std::string, std::size_t> found;  // by machine and node: its place among them
    const auto before = used_;
    answers_.clear();
    for (const std::string& host : pool_.hosts) {
      const auto known = before.find(host);
      const bool is_known = known != before.end();
      // One without a node, where a start failed and which did not answer since, is not waited for
      // again before the next start there.
      if (!is_known && failures_[host] > 0 && silent_.contains(host)) continue;
      const auto output = output_of(at(host, search_script()));
      if (!output.ok()) {
        silent_.insert(host);
        if (is_known) silent.push_back({known->second, host, false, host + " (does not answer)"});
        continue;
      }
      silent_.erase(host);
      used_.erase(host);
      for (const auto& [node, key] : nodes_in(host, *output)) {
        const auto [place, is_new] = found.try_emplace(key, nodes.size());
        if (is_new) {
          nodes.push_back({node, host, false, host});
        } else if (is_known && known->second == node) {
          nodes[place->second].id = nodes[place->second].where = host;
        }
      }
    }
    for (ListedNode& node : silent) {
      const auto by_another = std::ranges::find(nodes, node.name, &ListedNode::name);
      if (by_another == nodes.end()) {
        nodes.push_back(std::move(node));
      } else {
        answers_[node.id] = by_another->where;
        by_another->id = node.id;
      }
    }
    for (const ListedNode& node : nodes) used_[node.id] = node.name;
    for (const std::string& host : pool_.hosts) {
      if (!used_.contains(host)) shared_.leave(host);
    }
    return nodes;
  }

  Result<void> stop(const std::string& name, const std::string& id) override {
    std::vector<std::string> hosts{id};
    if (id.empty()) hosts = pool_.hosts;
    std::string mark = launch_mark(plan_, name);
    mark.replace(mark.rfind('.'), 1, "[.]");
    // It has some seconds to leave the run.
    const std::string script = fmt::format(
        "find() {{ grep -slaE -- '--launched.{}' /proc/[0-9]*/cmdline | tr -dc '0-9\\n'; }}; "
        "kill -TERM $(find) 2>/dev/null; n=0; "
        "while [ $n -lt 8 ] && [ -n \"$(find)\" ]; do sleep 1; n=$((n+1)); done; "
        "kill -KILL $(find) 2>/dev/null; exit 0",
        mark);
    Result<void> all;
    for (const std::string& host : hosts) {
      auto stopped = carry_out(at(host, script));
      if (const auto other = answers_.find(host); !stopped.ok() && other != answers_.end()) {
        stopped = carry_out(at(other->second, script));
      }
      if (stopped.ok() || !all.ok()) continue;
      all = Error{stopped.error().kind, fmt::format("{}: {}", host, stopped.error().message)};
    }
    return all;
  }

  std::vector<Result<void>> stop_all(const std::vector<ListedNode>& nodes) override {
    return stop_at_once(*this, nodes);
  }

 private:
  CommandRequest at(const std::string& host, const std::string& script) const {
    CommandRequest request;
    request.words = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"};
    request.words.insert(request.words.end(), pool_.options.begin(), pool_.options.end());
    request.words.insert(request.words.end(), {"--", host, script});
    return request;
  }

  // Prints what tells the machine from others, and the marks of this pool's nodes.
  std::string search_script() const {
    return fmt::format(
        "echo \"{}$(cat /proc/sys/kernel/random/boot_id)/$(readlink /proc/self/ns/pid)\"; "
        "grep -saohE -- '--launched.{}[.][0-9]+@{}' /proc/[0-9]*/cmdline | tr '\\0' ' '; exit 0",
        kMachine, pool_.name, plan_.run);
  }
  // Each node once, and that with its machine.
  std::map<std::string, std::string> nodes_in(const std::string& host,
                                              const std::string& output) const {
    std::istringstream words(output);
    std::string machine = host;
    std::map<std::string, std::string> nodes;
    for (std::string word; words >> word;) {
      // Without a boot_id it does not tell one host from another.
      const bool has_id = word.starts_with(kMachine) && word.size() > kMachine.size() &&
                          word[kMachine.size()] != '/';
      if (has_id) machine = word;
      const std::string node = launched_node(plan_.run, word);
      if (!node.empty()) nodes[node] = fmt::format("{} {}", machine, node);
    }
    return nodes;
  }

  // Ends with kHasNode where a node of the pool runs in the same folder of the same machine: the
  // host has another name. The shell of this script has the mark among its words, not as a word.
  std::string start_script(const NodeOrder& order, const config::PoolSection& pool) const {
    const auto words = join_words(plan_, pool, order.name, order.token.empty() ? "" : "-");
    const std::string log = fmt::format(".cache/troupe/{}.log", launch_mark(plan_, order.name));
    return fmt::format(
        "command -v {0} >/dev/null || exit {1}; "
        "for p in $(grep -slaE -- '--launched.{2}[.][0-9]+@{3}' /proc/[0-9]*/cmdline "
        "| tr -dc '0-9\\n'); do "
        "[ \"$(readlink /proc/$p/cwd)\" = \"$(pwd -P)\" ] && "
        "tr '\\0' '\\n' </proc/$p/cmdline | grep -qxE '{2}[.][0-9]+@{3}' && exit {4}; done; "
        "mkdir -p .cache/troupe && : >{5} || exit 1; echo {6}; "
        "exec 3<&0; setsid {7} <&3 >{5} 2>&1 & echo $!",
        shell_word(words.front()), kNoProgram, pool.name, plan_.run, kHasNode, log, kBegun,
        command_line(words));
  }

  // The token is the first line of the program's standard input. An Error is kLostPeers where the
  // node may run.
  Result<std::string> start_at(const std::string& host, const NodeOrder& order,
                               const config::PoolSection& pool) {
    CommandRequest request = at(host, start_script(order, pool));
    if (!order.token.empty()) request.input = order.token + "\n";
    ASSIGN_OR_RETURN(const CommandEnd ended, run_command(request));
    const auto made = check_end(request, ended);
    const bool has_begun = ended.output.find(kBegun) != std::string::npos;
    if (made.ok() && has_begun) return host;
    if (made.ok()) {
      return Error{ErrorKind::kUsage,
                   "it does something else than ssh tells it (a forced command?)"};
    }
    const int exit_code = ended.end && !has_begun ? ended.end->exit_code : 0;
    if (exit_code == kNoProgram && pool.program != kCopy) return start_copy(host, order);
    if (exit_code == kHasNode) {
      return Error{ErrorKind::kUsage,
                   "it has a node of this pool already, by another of its names"};
    }
    return Error{has_begun ? ErrorKind::kLostPeers : made.error().kind, made.error().message};
  }

  // A host without the program gets a copy of this one.
  Result<std::string> start_copy(const std::string& host, const NodeOrder& order) {
    std::ifstream file(plan_.program, std::ios::binary);
    CommandRequest request =
        at(host, fmt::format("mkdir -p .cache/troupe && cat >{0}.new && chmod 755 {0}.new && "
                             "mv {0}.new {0}",
                             kCopy));
    request.input.assign(std::istreambuf_iterator<char>(file), {});
    request.within = std::chrono::minutes(2);
    if (request.input.empty()) {
      return Error{ErrorKind::kUsage, fmt::format("it has no program, and {} cannot be read to be "
                                                  "copied there",
                                                  plan_.program)};
    }
    if (const auto copied = carry_out(request); !copied.ok()) {
      return Error{ErrorKind::kUsage, copied.error().message};
    }
    config::PoolSection pool = pool_;
    pool.program = kCopy;
    return start_at(host, order, pool);
  }

  const config::PoolSection pool_;
  const JoinPlan plan_;
  SharedHosts shared_;
  std::string why_none_;                        // why the first free host could not be taken
  std::map<std::string, std::string> used_;     // the node of a host
  std::map<std::string, int> failures_;         // of starts: the order of hosts
  std::set<std::string> silent_;                // did not answer list() last
  std::map<std::string, std::string> answers_;  // of a host that does not: its other name
};

}  // namespace

std::shared_ptr<actors::Launcher> make_ssh_launcher(const config::PoolSection& pool,
                                                    const JoinPlan& plan) {
  return std::make_shared<SshLauncher>(pool, plan);
}

}  // namespace troupe::launch
