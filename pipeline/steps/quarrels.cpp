#include "pipeline/steps/quarrels.h"

#include <algorithm>
#include <tuple>

namespace troupe::pipeline {

std::optional<Quarrels::Verdict> Quarrels::settle(const std::function<bool(std::uint32_t)>& is_lost,
                                                  const std::function<bool(std::uint32_t)>& learns,
                                                  runtime::TimePoint now) {
  std::erase_if(quarrels_, [&](const Quarrel& quarrel) {
    return is_lost(quarrel.from) || is_lost(quarrel.about);
  });
  // Both are known to live, or the others do not need the one that goes.
  const auto is_clear = [&](const Quarrel& quarrel) {
    if (learns(quarrel.from) || learns(quarrel.about)) return true;
    return std::any_of(quarrels_.begin(), quarrels_.end(), [&](const Quarrel& other) {
      return other.from == quarrel.about && other.about == quarrel.from;
    });
  };
  const auto due = std::find_if(quarrels_.begin(), quarrels_.end(), [&](const Quarrel& quarrel) {
    return now - quarrel.since >= (is_clear(quarrel) ? parting_ : accused_);
  });
  if (due == quarrels_.end()) return std::nullopt;
  const auto complaints = [&](std::uint32_t member) {
    return std::count_if(quarrels_.begin(), quarrels_.end(), [&](const Quarrel& each) {
      return (each.from == member || each.about == member) && !learns(each.from) &&
             !learns(each.about);
    });
  };
  const auto rank = [&](std::uint32_t member) {
    return std::tuple{learns(member), complaints(member), member};
  };
  return Verdict{*due, rank(due->from) > rank(due->about) ? due->from : due->about};
}

}  // namespace troupe::pipeline
