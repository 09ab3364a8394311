#include "telemetry/trace_arrows.h"

#include <algorithm>
#include <tuple>

namespace troupe::telemetry {
namespace {

// What within a node has the same flow may be something else on another one.
auto key(const ArrowEnd& end) {
  return std::tuple(end.flow, end.flow.within_node() ? end.node + 1 : 0);
}

// A message is sent and handled at some time between the beginnings of its spans and their ends: so
// the ends of its arrow may move there when clocks, or the time of sending, are not exact.
bool settle(Arrow& arrow) {
  if (arrow.from.time <= arrow.to.time) return true;
  if (arrow.from.begins > arrow.to.end) return false;
  arrow.from.time = std::min(arrow.from.time, arrow.to.end);
  arrow.to.time = std::max(arrow.from.time, arrow.to.time);
  return true;
}

}  // namespace

Arrows join_ends(std::vector<ArrowEnd> ends) {
  std::stable_sort(ends.begin(), ends.end(), [](const ArrowEnd& a, const ArrowEnd& b) {
    return std::tuple(key(a), !a.sent) < std::tuple(key(b), !b.sent);
  });
  Arrows result;
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

}  // namespace troupe::telemetry
