#include "telemetry/trace/trace_arrows.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace troupe::telemetry {
namespace {

using runtime::Duration;
using runtime::TraceFlow;

// No clock is farther off. A message that says so is ignored.
constexpr Duration kMostMove = std::chrono::seconds(1);

// A flow within a node may be another message on another node.
auto key(const ArrowEnd& end) {
  return std::tuple(end.flow, end.flow.within_node() ? end.node + 1 : 0);
}

// A message is sent and handled at some time within its two spans. Clocks and the time of sending
// are not exact, so the ends of its arrow may move within these spans.
bool settle(Arrow& arrow) {
  if (arrow.from.time <= arrow.to.time) return true;
  if (arrow.from.begins > arrow.to.end) return false;
  arrow.from.time = std::min(arrow.from.time, arrow.to.end);
  arrow.to.time = std::max(arrow.from.time, arrow.to.time);
  return true;
}

void sort(std::vector<ArrowEnd>& ends) {
  std::stable_sort(ends.begin(), ends.end(), [](const ArrowEnd& a, const ArrowEnd& b) {
    return std::tuple(key(a), !a.sent) < std::tuple(key(b), !b.sent);
  });
}

}  // namespace

Arrows join_ends(std::vector<ArrowEnd> ends) {
  Arrows result;
  sort(ends);
  for (std::size_t first = 0; first < ends.size();) {
    std::size_t next = first + 1;
    while (next < ends.size() && key(ends[next]) == key(ends[first])) ++next;
    if (next - first == 1 && !ends[first].flow.within_node()) result.loose.push_back(ends[first]);
    if (next - first == 2 && ends[first].sent && !ends[first + 1].sent) {
      Arrow arrow{ends[first], ends[first + 1]};
      if (settle(arrow)) {
        result.arrows.push_back(arrow);
      } else {
        ++result.left_out;
      }
    }
    first = next;
  }
  return result;
}

// Finds the longest ways through a graph. Its edges say how far one clock has to be ahead of
// another.
std::vector<Duration> moves_of_clocks(const std::vector<ArrowEnd>& ends, std::size_t nodes) {
  std::map<TraceFlow, const ArrowEnd*> sent;
  for (const ArrowEnd& end : ends) {
    if (end.sent && !end.flow.within_node()) sent.emplace(end.flow, &end);
  }
  std::map<std::pair<std::size_t, std::size_t>, Duration> ahead;
  for (const ArrowEnd& to : ends) {
    const auto from = to.sent ? sent.end() : sent.find(to.flow);
    if (from == sent.end() || from->second->node == to.node) continue;
    const Duration least = from->second->time - to.end;
    if (least > kMostMove || least < -kMostMove) continue;
    const auto [edge, added] = ahead.emplace(std::pair(from->second->node, to.node), least);
    if (!added) edge->second = std::max(edge->second, least);
  }
  std::vector<Duration> moves(nodes, Duration{0});
  bool changed = true;
  for (std::size_t round = 0; changed; ++round) {
    if (round > nodes) return std::vector<Duration>(nodes, Duration{0});  // a circle
    changed = false;
    for (const auto& [edge, least] : ahead) {
      const Duration wanted = moves[edge.first] + least;
      if (wanted <= moves[edge.second]) continue;
      moves[edge.second] = wanted;
      changed = true;
    }
  }
  const Duration first = nodes == 0 ? Duration{0} : moves.front();
  for (Duration& move : moves) move -= first;
  return moves;
}

}  // namespace troupe::telemetry
