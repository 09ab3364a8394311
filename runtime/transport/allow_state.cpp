#include "runtime/transport/allow_state.h"

#include <algorithm>

namespace troupe::runtime {
namespace {

const AllowedKey* find(std::span<const AllowedKey> listed, const std::string& key) {
  const auto same = [&](const AllowedKey& other) { return other.key == key; };
  const auto found = std::find_if(listed.begin(), listed.end(), same);
  return found == listed.end() ? nullptr : &*found;
}

}  // namespace

void AllowState::compare_with(std::span<const AllowedKey> listed, std::chrono::sys_seconds now) {
  for (auto known = let_in_.begin(); known != let_in_.end();) {
    const auto here = known++;
    const AllowedKey* entry = find(listed, here->first);
    if (entry != nullptr && entry->until) {
      here->second = *entry->until;
    } else if (entry != nullptr || now < here->second) {
      let_in_.erase(here);
    }
  }
}

Admission AllowState::admits(const std::string& key, std::span<const AllowedKey> listed,
                             std::chrono::sys_seconds now) {
  compare_with(listed, now);
  const AllowedKey* entry = find(listed, key);
  if (entry == nullptr || (entry->until && *entry->until <= now)) {
    return let_in_.contains(key) ? Admission::kExpired : Admission::kRefused;
  }
  if (entry->until) let_in_[key] = *entry->until;
  return Admission::kAdmitted;
}

}  // namespace troupe::runtime
