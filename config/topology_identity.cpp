#include "config/topology_identity.h"

#include <fmt/format.h>

#include "config/topology_fields.h"

namespace troupe::config {
namespace {

// Grows when the same state is described by another text: hashes of before are then unknown.
constexpr std::string_view kVersion = "troupe topology 1\n";

std::string described(const YamlValue* value) {
  return value == nullptr || value->is_null() ? "absent" : shown(flow_yaml(*value));
}

// Sections and lists of equal length are compared part by part, so that each difference is told
// where it is. Anything else is compared as it is printed.
void compare(const std::string& path, const YamlValue* was, const YamlValue* now,
             std::vector<std::string>& differences) {
  if (was != nullptr && now != nullptr && was->is_map() && now->is_map()) {
    const std::string prefix = path.empty() ? "" : path + ".";
    for (const YamlMember& member : was->members) {
      compare(prefix + member.key, &member.value, now->find(member.key), differences);
    }
    for (const YamlMember& member : now->members) {
      if (was->find(member.key) != nullptr) continue;
      compare(prefix + member.key, nullptr, &member.value, differences);
    }
    return;
  }
  if (was != nullptr && now != nullptr && was->is_list() && now->is_list() &&
      was->items.size() == now->items.size()) {
    for (std::size_t i = 0; i < was->items.size(); ++i) {
      compare(fmt::format("{}.{}", path, i), &was->items[i], &now->items[i], differences);
    }
    return;
  }
  const std::string before = was == nullptr ? "absent" : flow_yaml(*was);
  const std::string after = now == nullptr ? "absent" : flow_yaml(*now);
  if (before == after) return;
  differences.push_back(fmt::format("{}: was {}, is now {}", path, described(was), described(now)));
}

}  // namespace

runtime::Hash128 topology_hash(const Topology& topology) {
  runtime::Hasher hasher;
  hasher.add(kVersion);
  hasher.add(print_yaml(topology_record().write(topology, Selection::kState)));
  return hasher.digest();
}

std::vector<std::string> resume_problems(const Topology& started, const Topology& now) {
  const YamlValue was = topology_record().write(started, Selection::kKept);
  const YamlValue is = topology_record().write(now, Selection::kKept);
  std::vector<std::string> differences;
  compare("", &was, &is, differences);
  return differences;
}

}  // namespace troupe::config
