#include "launch/meeting/member_names.h"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::launch {

using runtime::Error;
using runtime::ErrorKind;

bool MemberNames::may_have(const std::string& name, const std::string& wanted,
                           const std::string& host, runtime::TimePoint now) const {
  const bool is_reserved = reserved_.contains(name);
  if (wanted.empty() ? is_reserved : name != wanted) return false;
  const auto promise = promised_.find(name);
  if (promise == promised_.end()) return true;
  if (is_reserved) return false;
  return promise->second.host == host || now - promise->second.made >= kPromise;
}

std::optional<std::string> MemberNames::choose(const std::string& wanted, const std::string& host,
                                               const std::vector<std::string>& awaited,
                                               runtime::TimePoint now) {
  const std::string* best = nullptr;
  // Those never promised count as promised before all others.
  const auto promised_at = [&](const std::string& name) {
    const auto promise = promised_.find(name);
    return promise == promised_.end() ? runtime::TimePoint::min() : promise->second.made;
  };
  for (const std::string& name : awaited) {
    if (!may_have(name, wanted, host, now)) continue;
    if (best == nullptr || promised_at(name) < promised_at(*best)) best = &name;
  }
  if (best == nullptr) return std::nullopt;
  promised_[*best] = {now, host};
  return *best;
}

std::vector<std::string> MemberNames::open_of(const std::vector<std::string>& names) const {
  std::vector<std::string> open;
  for (const std::string& name : names) {
    if (!reserved_.contains(name)) open.push_back(name);
  }
  return open;
}

// The most hopeful reason first: a promise lapses soon, a slot that is not given yet will be later,
// then one that a process leaves; and after that there is nothing to wait for.
runtime::Result<runtime::NotNow> MemberNames::why_none(const std::string& wanted,
                                                       const std::vector<std::string>& now,
                                                       const std::vector<std::string>& awaited,
                                                       bool gives_again) const {
  const std::vector<std::string> open = open_of(awaited);
  const auto suits = [&](const std::vector<std::string>& names) {
    return wanted.empty() ? !names.empty()
                          : std::find(names.begin(), names.end(), wanted) != names.end();
  };
  if (suits(open_of(now))) {
    return runtime::NotNow{wanted.empty()
                               ? "every member slot of the run is promised to another process"
                               : wanted + " is promised to another process"};
  }
  if (suits(open)) {
    return runtime::NotNow{
        fmt::format("the run begins with {}, and others join it after that", fmt::join(now, ", "))};
  }
  if (wanted.empty() && gives_again) {
    return runtime::NotNow{
        "every member slot of the run is taken until one of those that joined has left; a run with "
        "a higher cluster.joiners has more"};
  }
  if (wanted.empty()) {
    return Error{
        ErrorKind::kUsage,
        "every member slot of the run is taken; a run with a higher cluster.joiners has more"};
  }
  const std::string advice =
      open.empty() ? "; nor is any other"
                   : fmt::format("; leave out --node, or name one that is awaited: {}",
                                 fmt::join(open, ", "));
  return Error{ErrorKind::kUsage, fmt::format("{} is not awaited{}", wanted, advice)};
}

}  // namespace troupe::launch
