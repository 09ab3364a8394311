#include "config/shipped.h"

#include <algorithm>
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

std::vector<std::string> names_of(std::span<const EmbeddedFile> files) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : files) names.emplace_back(without_ending(file.name));
  return names;
}

std::optional<std::string_view> text_of(std::span<const EmbeddedFile> files,
                                        std::string_view name) {
  for (const EmbeddedFile& file : files) {
    if (without_ending(file.name) == name) return file.text;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> shipped_names() { return names_of(embedded_topologies()); }

std::optional<std::string_view> shipped_text(const std::string& path) {
  std::error_code ignored;
  // A file of this name goes before the topology that comes with the program, and so does a link
  // that leads nowhere.
  if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) return std::nullopt;
  return text_of(embedded_topologies(), path);
}

std::string shipped_suggestion(const std::string& path) {
  if (path.empty() || path.find('/') != std::string::npos) return "";
  const auto names = shipped_names();
  const std::string meant = runtime::nearest_word(without_ending(path), names);
  if (!meant.empty()) return fmt::format("; did you mean {}, which comes with the program?", meant);
  return fmt::format("; with the program come {}", fmt::join(names, ", "));
}

std::vector<std::string> zoo_names() { return names_of(embedded_zoo()); }

std::optional<std::string_view> zoo_text(std::string_view name) {
  return text_of(embedded_zoo(), name);
}

std::string zoo_source(std::string_view name) { return fmt::format("zoo/{}{}", name, kEnding); }

bool is_from_zoo(const Place& place) {
  const std::vector<std::string> names = zoo_names();
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return place.source == zoo_source(name); });
}

}  // namespace troupe::config
