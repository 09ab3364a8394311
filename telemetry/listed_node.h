#pragma once

// A node as nodes.json of a run lists it, and its fields (runtime/base/fields.h).

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/fields.h"
#include "runtime/base/utc_time.h"
#include "telemetry/record.h"

namespace troupe::telemetry {

struct ListedNode {
  NodeFacts facts;
  std::chrono::sys_time<std::chrono::milliseconds> since{};  // of its state
};

template <class Archive>
void fields(Archive& archive, runtime::Like<ListedNode> auto& node) {
  constexpr std::size_t kMost = SIZE_MAX;
  archive.text("name", node.facts.name, kMost);
  archive.text("host", node.facts.host, kMost);
  archive.number("pid", node.facts.pid, INT32_MAX);
  archive.text("role", node.facts.role, kMost);
  archive.text("state", node.facts.state, kMost);
  archive.converted(
      "since", node.since, kMost, [](const auto& time) { return runtime::utc_text(time); },
      runtime::read_utc);
  archive.last("cause", node.facts.cause);
}

inline const char* fault_of(const ListedNode& node) {
  return node.facts.name.empty() ? "a node without a name" : nullptr;
}

}  // namespace troupe::telemetry
