#include "actors/pool_node.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace troupe::actors {
namespace {

constexpr std::array kWords{"asked",   "queued",   "starting", "learning",
                            "running", "draining", "stopping", "ended"};

}  // namespace

const char* word_of(PoolNodeState state) { return kWords.at(static_cast<std::size_t>(state)); }

std::optional<PoolNodeState> pool_node_state(std::string_view word) {
  const auto found = std::ranges::find(kWords, word);
  if (found == kWords.end()) return std::nullopt;
  return static_cast<PoolNodeState>(found - kWords.begin());
}

std::string text_of(const PoolNode& node) {
  return fmt::format("{} ({})", node.name, node.id.empty() ? "no id is known" : node.id);
}

}  // namespace troupe::actors
