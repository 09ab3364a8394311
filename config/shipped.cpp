#include "config/shipped.h"

#include <filesystem>

#include <fmt/format.h>

#include "config/embedded_file.h"
#include "runtime/base/nearest_word.h"

namespace troupe::config {
namespace {

constexpr std::string_view kEnding = ".yaml";

std::string_view without_ending(std::string_view name) {
  return name.ends_with(kEnding) ? name.substr(0, name.size() - kEnding.size()) : name;
}

}  // namespace

std::vector<std::string> shipped_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_topologies()) {
    names.emplace_back(without_ending(file.name));
  }
  return names;
}

std::optional<std::string_view> shipped_text(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) return std::nullopt;
  for (const EmbeddedFile& file : embedded_topologies()) {
    if (without_ending(file.name) == path) return file.text;
  }
  return std::nullopt;
}

std::string shipped_suggestion(const std::string& path) {
  if (path.empty() || path.find('/') != std::string::npos) return "";
  const auto names = shipped_names();
  const std::string meant = runtime::nearest_word(without_ending(path), names);
  if (!meant.empty()) return fmt::format("; did you mean {}, which comes with the program?", meant);
  return fmt::format("; with the program come {}", fmt::join(names, ", "));
}

}  // namespace troupe::config
