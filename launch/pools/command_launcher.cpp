// Nodes by commands of the topology. {name}, {id} and {join} are replaced in their words, so that
// no shell reads what stands for these.

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
using Words = std::vector<std::string>;

// Clouds take their time.
constexpr auto kWithin = std::chrono::minutes(2);
constexpr std::size_t kMostDigits = 10;  // of a node's number
constexpr std::size_t kMostOfId = 100;   // bytes of an id that is none

class CommandLauncher final : public actors::Launcher {
 public:
  CommandLauncher(config::PoolSection pool, JoinPlan plan, Words start, Words stop, Words list)
      : pool_(std::move(pool)),
        plan_(std::move(plan)),
        start_(std::move(start)),
        stop_(std::move(stop)),
        list_(std::move(list)) {}

  // A command that has run may have made the node, however it has ended, and told its id.
  std::string id_for(const std::string& name) override {
    const auto told = told_.find(name);
    return told == told_.end() ? "" : told->second;
  }

  // The first word that it prints is the node's id, else the id is its name.
  Result<std::string> start(const NodeOrder& order) override {
    const Words join = join_words(plan_, pool_, order.name, order.token.empty() ? "" : "-");
    CommandRequest request = filled(start_, order.name, "", command_line(join));
    request.leaves_others = true;  // the node may be one of them
    // The token goes the way that no list of processes shows.
    if (!order.token.empty()) request.input = order.token + "\n";
    ASSIGN_OR_RETURN(const CommandEnd ended, run_command(request));
    std::string id;
    std::istringstream(ended.output) >> id;
    if (is_tool_id(id)) told_[order.name] = id;
    const auto made = check_end(request, ended);
    if (!made.ok()) return Error{ErrorKind::kLostPeers, made.error().message};
    if (id.empty()) return full_name(order.name);
    if (is_tool_id(id)) return id;
    return Error{ErrorKind::kLostPeers,
                 fmt::format("{} prints no id of a node: {}", request.words.front(),
                             shown_line(id, kMostOfId))};
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
      if (!is_ours(name)) continue;
      if (!id.empty() && !is_tool_id(id)) {
        return Error{ErrorKind::kUsage,
                     fmt::format("{} lists {} with an id that is none: {}", list_.front(), name,
                                 shown_line(id, kMostOfId))};
      }
      nodes.push_back(
          {name.substr(full_name("").size()), id, state == "queued" || state == "pending"});
    }
    return nodes;
  }

  Result<void> stop(const std::string& name, const std::string& id) override {
    return carry_out(filled(stop_, name, id, ""));
  }

  std::vector<Result<void>> stop_all(const std::vector<ListedNode>& nodes) override {
    return stop_at_once(*this, nodes);
  }

 private:
  std::string full_name(const std::string& node) const {
    return fmt::format("troupe-{}-{}", plan_.run, node);
  }
  // "troupe-1a2b3c4d-own.3"
  bool is_ours(std::string_view name) const {
    const std::string prefix = full_name(pool_.name + ".");
    if (!name.starts_with(prefix)) return false;
    name.remove_prefix(prefix.size());
    return !name.empty() && name.size() <= kMostDigits &&
           name.find_first_not_of("0123456789") == std::string_view::npos;
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
  std::map<std::string, std::string> told_;  // ids of nodes, as their starts have printed them
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
