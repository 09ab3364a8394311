#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "pipeline/checkpoint.h"

namespace troupe::pipeline {
namespace {

// The step in a checkpoint's name; nothing for other names.
std::optional<std::uint64_t> step_of(const std::string& name) {
  constexpr std::string_view kPrefix = "step-";
  if (!name.starts_with(kPrefix)) return {};
  std::uint64_t step = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  if (checkpoint_name(step) != name) return {};
  return step;
}

}  // namespace

std::string checkpoint_name(std::uint64_t step) { return fmt::format("step-{:012}.h5", step); }

std::vector<std::string> checkpoints_newest_first(const std::vector<std::string>& names) {
  std::vector<std::string> checkpoints;
  for (const std::string& name : names) {
    if (step_of(name)) checkpoints.push_back(name);
  }
  std::sort(checkpoints.begin(), checkpoints.end(),
            [](const auto& a, const auto& b) { return *step_of(a) > *step_of(b); });
  return checkpoints;
}

std::vector<std::string> to_remove(const std::vector<std::string>& names, std::uint32_t keep,
                                   const std::optional<std::string>& best) {
  std::vector<std::string> removed = checkpoints_newest_first(names);
  removed.erase(removed.begin(),
                removed.begin() + std::min<std::ptrdiff_t>(keep, std::ssize(removed)));
  if (best) std::erase(removed, *best);
  return removed;
}

}  // namespace troupe::pipeline
