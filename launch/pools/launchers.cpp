#include "launch/pools/launchers.h"

#include <charconv>
#include <cmath>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "launch/processes/command.h"
#include "launch/processes/shell_word.h"
#include "runtime/base/start_thread.h"
#include "runtime/base/utf8.h"

namespace troupe::launch {
namespace {

// Nothing else is done for the pools of a run meanwhile.
constexpr auto kPriceWithin = std::chrono::seconds(5);
constexpr std::size_t kMostId = 256;

}  // namespace

std::string launch_mark(const JoinPlan& plan, const std::string& node) {
  return fmt::format("{}@{}", node, plan.run);
}

std::string launched_node(const std::string& run, std::string_view mark) {
  const std::size_t at = mark.rfind('@');
  if (at == std::string_view::npos || mark.substr(at + 1) != run) return "";
  return std::string(mark.substr(0, at));
}

std::vector<std::string> join_words(const JoinPlan& plan, const config::PoolSection& pool,
                                    const std::string& node, const std::string& token_file) {
  std::vector<std::string> words{pool.program.empty() ? plan.program : pool.program,
                                 "join",
                                 plan.address,
                                 "--launched",
                                 launch_mark(plan, node),
                                 "--workers",
                                 std::to_string(pool.workers)};
  if (!token_file.empty()) words.insert(words.end(), {"--token-file", token_file});
  words.insert(words.end(), pool.join.begin(), pool.join.end());
  return words;
}

runtime::Result<std::vector<std::string>> words_in(const config::PoolSection& pool,
                                                   const std::string& command) {
  if (auto words = words_of_line(command)) return *std::move(words);
  return runtime::Error{runtime::ErrorKind::kUsage,
                        fmt::format("pool {}: a quote of `{}` does not end", pool.name, command)};
}

runtime::Result<std::function<runtime::Result<double>()>> make_price(
    const config::PoolSection& pool) {
  using Price = std::function<runtime::Result<double>()>;
  ASSIGN_OR_RETURN(const auto words, words_in(pool, pool.price));
  if (words.empty()) return Price();
  return Price([words, name = pool.name]() -> runtime::Result<double> {
    const auto output = output_of({.words = words, .within = kPriceWithin});
    if (!output.ok()) {
      return runtime::Error{output.error().kind,
                            fmt::format("pool {}: no price: {}", name, output.error().message)};
    }
    std::string word;
    std::istringstream(*output) >> word;
    double price = -1.0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), price);
    const bool is_whole = read.ec == std::errc() && read.ptr == word.data() + word.size();
    if (is_whole && std::isfinite(price) && price >= 0.0) return price;
    return runtime::Error{
        runtime::ErrorKind::kUsage,
        fmt::format("pool {}: `{}` prints no price, such as 0.45", name, command_line(words))};
  });
}

bool is_tool_id(std::string_view id) {
  return !id.empty() && id.size() <= kMostId && runtime::printable(id) == id;
}

std::vector<runtime::Result<void>> stop_at_once(actors::Launcher& launcher,
                                                const std::vector<actors::ListedNode>& nodes) {
  std::vector<runtime::Result<void>> results(nodes.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto stop = [&, i] { results[i] = launcher.stop(nodes[i].name, nodes[i].id); };
    auto thread = runtime::start_thread("the stop of a node", stop);
    if (thread.ok()) {
      threads.push_back(std::move(*thread));
    } else {
      stop();
    }
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

runtime::Result<std::shared_ptr<actors::Launcher>> make_launcher(const config::PoolSection& pool,
                                                                 const JoinPlan& plan) {
  switch (pool.launcher) {
    case config::LauncherKind::kSlurm:
      return make_slurm_launcher(pool, plan);
    case config::LauncherKind::kSsh:
      return make_ssh_launcher(pool, plan);
    case config::LauncherKind::kKubernetes:
      return make_kubernetes_launcher(pool, plan);
    case config::LauncherKind::kCommand:
      return make_command_launcher(pool, plan);
  }
  CHECK(false, "a kind of launcher");
}

}  // namespace troupe::launch
