#include "launch/pools/pool_journal.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

#include "launch/folder/line_text.h"
#include "launch/processes/command.h"
#include "runtime/base/clock.h"
#include "runtime/base/secret.h"
#include "runtime/base/utc_time.h"

namespace troupe::launch {
namespace {

using runtime::Result;

constexpr std::size_t kLongestText = 4096;

struct RunLine {
  static constexpr std::string_view kKind = "run";
  std::string run, time;
};
template <class Archive>
void fields(Archive& archive, runtime::Like<RunLine> auto& line) {
  archive.text("run", line.run, kLongestText);
  archive.text("time", line.time, kLongestText);
}

struct WantedLine {
  static constexpr std::string_view kKind = "wanted";
  std::string pool;
  std::uint32_t nodes = 0;
};
template <class Archive>
void fields(Archive& archive, runtime::Like<WantedLine> auto& line) {
  archive.text("pool", line.pool, kLongestText);
  archive.number("nodes", line.nodes);
}

struct NodeLine {
  static constexpr std::string_view kKind = "node";
  std::string name, pool, state, id, where, cause, time;
  double paid_seconds = 0.0, cost = 0.0, price_per_node_hour = 0.0;
};
template <class Archive>
void fields(Archive& archive, runtime::Like<NodeLine> auto& line) {
  archive.text("name", line.name, kLongestText);
  archive.text("pool", line.pool, kLongestText);
  archive.text("state", line.state, kLongestText);
  archive.text("id", line.id, kLongestText);
  archive.text("where", line.where, kLongestText);
  archive.text("cause", line.cause, kLongestText);
  archive.text("time", line.time, kLongestText);
  archive.real("paid_seconds", line.paid_seconds);
  archive.real("cost", line.cost);
  archive.real("price_per_node_hour", line.price_per_node_hour);
}

struct WorkLine {
  static constexpr std::string_view kKind = "work";
  std::vector<std::pair<std::string, double>> iterations;  // by pool
  std::optional<double> first_seconds, first_cost;
};
template <class Archive>
void fields(Archive& archive, runtime::Like<WorkLine> auto& line) {
  archive.map("iterations", line.iterations, [](auto& item, auto& count) { item.real("", count); });
  archive.perhaps("first_seconds", line.first_seconds);
  archive.perhaps("first_cost", line.first_cost);
}

std::string time_of_day() {
  return runtime::utc_text(std::chrono::floor<std::chrono::milliseconds>(runtime::wall_now()));
}

const char* fault_of(const NodeLine& line) {
  return line.name.empty() || line.pool.empty() ? "a node without a name or a pool" : nullptr;
}

// One that is gone and was not paid was never there.
std::optional<actors::PoolNode> node_of(const NodeLine& line) {
  const auto state = actors::pool_node_state(line.state);
  if (!state) return std::nullopt;
  return actors::PoolNode{line.name,
                          line.pool,
                          *state,
                          line.id,
                          line.where,
                          line.cause,
                          {line.paid_seconds, line.cost},
                          line.price_per_node_hour,
                          *state != actors::PoolNodeState::kGone || line.paid_seconds > 0.0};
}

void take_line(std::string_view text, PoolHistory& history) {
  const nlohmann::json parsed = runtime::parse_json(text);
  if (NodeLine line; read_line(parsed, line)) {
    const auto node = node_of(line);
    if (!node) return;
    const auto known = std::ranges::find(history.nodes, node->name, &actors::PoolNode::name);
    if (known == history.nodes.end()) {
      history.nodes.push_back(*node);
    } else {
      *known = *node;
    }
    history.since[node->name] = line.time;
  } else if (WantedLine wanted; read_line(parsed, wanted)) {
    history.wanted[wanted.pool] = wanted.nodes;
  } else if (RunLine run; read_line(parsed, run)) {
    history.run = run.run;
    const auto began = runtime::read_utc(run.time);
    history.began = began ? runtime::WallTime(*began) : runtime::wall_now();
  } else if (WorkLine work; read_line(parsed, work)) {
    history.contributed = {work.iterations.begin(), work.iterations.end()};
    if (work.first_seconds && work.first_cost) {
      history.first_forecast = {*work.first_seconds, *work.first_cost};
    }
  }
}

// A node that cost something when it was written has done so ever since.
void pay_until_now(PoolHistory& history) {
  for (actors::PoolNode& node : history.nodes) {
    const auto since = runtime::read_utc(history.since.at(node.name));
    if (!actors::is_costing(node.state) || !since) continue;
    const double seconds = std::max(0.0, runtime::seconds(runtime::wall_now() - *since));
    node.paid.seconds += seconds;
    node.paid.cost += seconds / 3600.0 * node.price_per_node_hour;
  }
}

}  // namespace

PoolHistory read_pool_journal(const std::string& path) {
  PoolHistory history;
  std::ifstream in(path, std::ios::binary);
  for (std::string line; std::getline(in, line);) take_line(line, history);
  return history;
}

std::vector<actors::PoolNode> nodes_left(const PoolHistory& history) {
  std::vector<actors::PoolNode> left = history.nodes;
  std::erase_if(left, [](const auto& node) { return node.is_gone(); });
  return left;
}

std::vector<actors::PoolNode> nodes_to_adopt(const PoolHistory& history, bool returns) {
  using State = actors::PoolNodeState;
  std::vector<actors::PoolNode> nodes = history.nodes;
  for (actors::PoolNode& node : nodes) {
    const bool had_members = node.state >= State::kLearning && node.state <= State::kDraining;
    if (had_members && !returns) node.state = State::kStopping;
  }
  return nodes;
}

std::map<std::string, actors::PoolAccount> read_pool_accounts(const std::string& path) {
  actors::CostBook costs;
  runtime::TimePoint newest{0};
  std::map<std::string, actors::PoolAccount> accounts;
  std::ifstream in(path, std::ios::binary);
  for (std::string text; std::getline(in, text);) {
    NodeLine line;
    if (!read_line(runtime::parse_json(text), line)) continue;
    const auto node = node_of(line);
    const auto time = runtime::read_utc(line.time);
    if (!node || !time) continue;
    newest = time->time_since_epoch();
    costs.note(*node, newest);
    accounts[node->pool] = {};
  }
  for (auto& [pool, account] : accounts) account = costs.account(pool, newest);
  return accounts;
}

Result<PoolJournal> PoolJournal::open(const std::string& path) {
  PoolHistory history;
  ASSIGN_OR_RETURN(LineFile file, LineFile::open(path, true, [&](std::string_view line) {
                     take_line(line, history);
                   }));
  if (history.run.empty()) {
    history.run = fmt::format("{:08x}", static_cast<std::uint32_t>(runtime::secret_number()));
    history.began = runtime::wall_now();
    RETURN_IF_ERROR(file.add_for_good(text_of(RunLine{history.run, time_of_day()})));
  }
  pay_until_now(history);
  return PoolJournal(std::move(file), std::move(history));
}

// Tools may say much, and terminals show what stands here: it has the shown part of their words.
Result<void> PoolJournal::add(const actors::PoolNode& node) {
  return file_.add_for_good(text_of(
      NodeLine{node.name, node.pool, actors::word_of(node.state), node.id,
               shown_line(node.where, kLongestText), shown_line(node.cause, kLongestText),
               time_of_day(), node.paid.seconds, node.paid.cost, node.price_per_node_hour}));
}

Result<void> PoolJournal::add_work(const std::map<std::string, double>& contributed,
                                   const std::optional<actors::FirstForecast>& forecast) {
  WorkLine line{{contributed.begin(), contributed.end()}, {}, {}};
  if (forecast) {
    line.first_seconds = forecast->seconds;
    line.first_cost = forecast->cost;
  }
  return file_.add_for_good(text_of(line));
}

Result<void> PoolJournal::add_wanted(const std::string& pool, std::uint32_t nodes) {
  return file_.add_for_good(text_of(WantedLine{pool, nodes}));
}

}  // namespace troupe::launch
