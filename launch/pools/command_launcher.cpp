// Nodes by commands of the topology. {name}, {id} and {join} are replaced in their words, so that
// no shell reads what stands for these.

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
using Words = std::vector<std::string>;

// Clouds take their time.
constexpr auto kWithin = std::chrono::minutes(2);

class CommandLauncher final : public actors::Launcher {
 public:
  CommandLauncher(config::PoolSection pool, JoinPlan plan, Words start, Words stop, Words list)
      : pool_(std::move(pool)),
        plan_(std::move(plan)),
        start_(std::move(start)),
        stop_(std::move(stop)),
        list_(std::move(list)) {}

  // The first word that it prints is the node's id, else the id is its name.
  Result<std::string> start(const NodeOrder& order) override {
    const Words join = join_words(plan_, pool_, order.name, order.token.empty() ? "" : "-");
    CommandRequest request = filled(start_, order.name, "", command_line(join));
    request.leaves_others = true;  // the node may be one of them
    // The token goes the way that no list of processes shows.
    if (!order.token.empty()) request.input = order.token + "\n";
    ASSIGN_OR_RETURN(const std::string output, output_of(request));
    std::string id;
    std::istringstream(output) >> id;
    return id.empty() ? full_name(order.name) : id;
  }

  bool lists() const override { return !list_.empty(); }

  // Lines begin with the name of a node. Others may be those of other runs.
  Result<std::vector<ListedNode>> list() override {
    ASSIGN_OR_RETURN(const std::string output, output_of(filled(list_, "", "", "")));
    std::vector<ListedNode> nodes;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
      std::string name, id, state;
      std::istringstream(line) >> name >> id >> state;
      const std::string prefix = full_name(fmt::format("{}.", pool_.name));
      if (!name.starts_with(prefix)) continue;
      nodes.push_back(
          {name.substr(full_name("").size()), id, state == "queued" || state == "pending"});
    }
    return nodes;
  }

  Result<void> stop(const std::string& name, const std::string& id) override {
    const auto stopped = output_of(filled(stop_, name, id, ""));
    if (!stopped.ok()) return stopped.error();
    return {};
  }

  std::vector<Result<void>> stop_all(const std::vector<ListedNode>& nodes) override {
    return stop_at_once(*this, nodes);
  }

 private:
  std::string full_name(const std::string& node) const {
    return fmt::format("troupe-{}-{}", plan_.run, node);
  }
  CommandRequest filled(Words words, const std::string& node, const std::string& id,
                        const std::string& join) const {
    const std::string name = full_name(node);
    for (std::string& word : words) {
      std::string made;
      for (std::size_t i = 0; i < word.size();) {
        const auto is = [&](std::string_view what) {
          return word.compare(i, what.size(), what) == 0;
        };
        if (is("{name}")) {
          made += name;
          i += 6;
        } else if (is("{id}")) {
          made += id.empty() ? name : id;
          i += 4;
        } else if (is("{join}")) {
          made += join;
          i += 6;
        } else {
          made += word[i++];
        }
      }
      word = std::move(made);
    }
    return {.words = std::move(words), .within = kWithin};
  }

  const config::PoolSection pool_;
  const JoinPlan plan_;
  const Words start_, stop_, list_;
};

}  // namespace

Result<std::shared_ptr<actors::Launcher>> make_command_launcher(const config::PoolSection& pool,
                                                                const JoinPlan& plan) {
  ASSIGN_OR_RETURN(Words start, words_in(pool, pool.start));
  ASSIGN_OR_RETURN(Words stop, words_in(pool, pool.stop));
  ASSIGN_OR_RETURN(Words list, words_in(pool, pool.list));
  if (start.empty() || stop.empty()) {
    return Error{ErrorKind::kUsage,
                 fmt::format("pool {}: `start` and `stop` are commands", pool.name)};
  }
  return std::shared_ptr<actors::Launcher>(std::make_shared<CommandLauncher>(
      pool, plan, std::move(start), std::move(stop), std::move(list)));
}

}  // namespace troupe::launch
