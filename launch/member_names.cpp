#include "launch/member_names.h"

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

runtime::Result<std::string> MemberNames::choose(const std::string& wanted, const std::string& host,
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
  if (best != nullptr) {
    promised_[*best] = {now, host};
    return *best;
  }
  if (!wanted.empty()) {
    std::vector<std::string> others;
    for (const std::string& name : awaited) {
      if (may_have(name, "", host, now)) others.push_back(name);
    }
    const std::string advice =
        others.empty() ? "; nor is any other"
                       : fmt::format("; leave out --node, or name one that is awaited: {}",
                                     fmt::join(others, ", "));
    return Error{
        ErrorKind::kUsage,
        fmt::format("{} is not awaited, or another process is about to be it{}", wanted, advice)};
  }
  return Error{ErrorKind::kUsage, "all members of the run are there, or about to come"};
}

}  // namespace troupe::launch
