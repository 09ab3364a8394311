#include "pipeline/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

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

// The number behind `key`.
template <class Number>
void read_number(std::string_view text, std::string_view key, Number& number) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return;
  std::from_chars(text.data() + at + key.size(), text.data() + text.size(), number);
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
                                   std::uint64_t newest, std::optional<std::uint64_t> best) {
  std::vector<std::string> removed = checkpoints_newest_first(names);
  std::erase_if(removed, [&](const std::string& name) { return *step_of(name) > newest; });
  removed.erase(removed.begin(),
                removed.begin() + std::min<std::ptrdiff_t>(keep, std::ssize(removed)));
  if (best) std::erase(removed, checkpoint_name(*best));
  return removed;
}

std::string best_json(const BestCheckpoint& best) {
  return fmt::format(R"({{"step":{},"figure":"{}","distance":{},"file":"{}"}})"
                     "\n",
                     best.step, best.figure, best.distance, checkpoint_name(best.step));
}

std::optional<BestCheckpoint> parse_best(std::string_view text) {
  BestCheckpoint best;
  read_number(text, "\"step\":", best.step);
  read_number(text, "\"distance\":", best.distance);
  constexpr std::string_view kFigure = "\"figure\":\"";
  if (const std::size_t at = text.find(kFigure); at != std::string_view::npos) {
    const std::string_view rest = text.substr(at + kFigure.size());
    best.figure = rest.substr(0, rest.find('"'));
  }
  if (!std::isfinite(best.distance) || best_json(best) != text) return {};
  return best;
}

}  // namespace troupe::pipeline
