// Nodes by ssh: one on each host at a time, a process that goes on when the connection ends. It is
// known by its mark, which stands on its command line.

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "launch/pools/launchers.h"
#include "launch/processes/command.h"
#include "launch/processes/shell_word.h"

namespace troupe::launch {
namespace {

using actors::ListedNode;
using actors::NodeOrder;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr int kNoProgram = 127;
constexpr const char* kCopy = ".cache/troupe/troupe";  // below the home folder there

class SshLauncher final : public actors::Launcher {
 public:
  SshLauncher(config::PoolSection pool, JoinPlan plan)
      : pool_(std::move(pool)), plan_(std::move(plan)) {}

  // The next host that has no node. One that fails is the last to be tried again.
  Result<std::string> start(const NodeOrder& order) override {
    std::string host;
    for (const std::string& each : pool_.hosts) {
      const bool is_better =
          !used_.contains(each) && (host.empty() || failures_[each] < failures_[host]);
      if (is_better) host = each;
    }
    if (host.empty()) {
      return Error{ErrorKind::kUsage,
                   fmt::format("each of the {} hosts of pool {} has a node already",
                               pool_.hosts.size(), pool_.name)};
    }
    used_[host] = order.name;
    auto started = start_at(host, order, pool_);
    if (!started.ok()) {
      // If it runs there all the same, list() finds it.
      used_.erase(host);
      ++failures_[host];
      return Error{started.error().kind, fmt::format("{}: {}", host, started.error().message)};
    }
    return host;
  }

  void adopt(const std::string& name, const std::string& id) override {
    if (!id.empty()) used_[id] = name;
    looks_everywhere_ = looks_everywhere_ || id.empty();
  }

  // A host that does not answer keeps its node: it may be there.
  Result<std::vector<ListedNode>> list() override {
    std::vector<ListedNode> nodes;
    for (const std::string& host : pool_.hosts) {
      // One that failed and has no node is not waited for again.
      const bool may_have = used_.contains(host) || looks_everywhere_ || failures_[host] == 0;
      if (!may_have) continue;
      const std::string script = fmt::format(
          "grep -saohE -- '--launched.{}[.][0-9]+@{}' /proc/[0-9]*/cmdline | tr '\\0' ' '; exit 0",
          pool_.name, plan_.run);
      const auto output = output_of(at(host, script));
      if (!output.ok()) {
        if (const auto node = used_.find(host); node != used_.end()) {
          nodes.push_back({node->second, host, false, host + " (does not answer)"});
        }
        continue;
      }
      used_.erase(host);
      std::istringstream lines(*output);
      std::map<std::string, bool> seen;
      for (std::string word; lines >> word;) {
        const std::string node = launched_node(plan_.run, word);
        if (node.empty() || std::exchange(seen[node], true)) continue;
        used_[host] = node;
        nodes.push_back({node, host, false, host});
      }
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
    for (const std::string& host : hosts) {
      const auto stopped = output_of(at(host, script));
      // A host that cannot be asked matters where the node is known to be.
      if (!stopped.ok() && !id.empty()) {
        return Error{stopped.error().kind, fmt::format("{}: {}", host, stopped.error().message)};
      }
    }
    return {};
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

  // The token is the first line of the program's standard input.
  Result<std::string> start_at(const std::string& host, const NodeOrder& order,
                               const config::PoolSection& pool) {
    const auto words = join_words(plan_, pool, order.name, order.token.empty() ? "" : "-");
    const std::string log = fmt::format(".cache/troupe/{}.log", launch_mark(plan_, order.name));
    CommandRequest request =
        at(host, fmt::format("command -v {} >/dev/null || exit {}; mkdir -p .cache/troupe; "
                             "exec 3<&0; setsid {} <&3 >{} 2>&1 & echo $!",
                             shell_word(words.front()), kNoProgram, command_line(words), log));
    if (!order.token.empty()) request.input = order.token + "\n";
    ASSIGN_OR_RETURN(const CommandEnd ended, run_command(request));
    if (ended.end && *ended.end == ChildEnd{0, 0}) return host;
    const bool lacks_program = ended.end && ended.end->exit_code == kNoProgram;
    if (lacks_program && pool.program != kCopy) return start_copy(host, order);
    return Error{
        ended.end ? ErrorKind::kUsage : ErrorKind::kLostPeers,
        fmt::format("ssh {}{}{}", ended.end ? ended.end->text() : "is killed: it takes too long",
                    ended.last_error.empty() ? "" : ": ", ended.last_error)};
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
    RETURN_IF_ERROR(output_of(request));
    config::PoolSection pool = pool_;
    pool.program = kCopy;
    return start_at(host, order, pool);
  }

  const config::PoolSection pool_;
  const JoinPlan plan_;
  std::map<std::string, std::string> used_;  // the node of a host
  std::map<std::string, int> failures_;
  bool looks_everywhere_ = false;  // for a node that was asked for, and nobody knows where
};

}  // namespace

std::shared_ptr<actors::Launcher> make_ssh_launcher(const config::PoolSection& pool,
                                                    const JoinPlan& plan) {
  return std::make_shared<SshLauncher>(pool, plan);
}

}  // namespace troupe::launch
