#include "config/zoo.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/embedded_file.h"

namespace troupe::config {
namespace {

constexpr std::string_view kEnding = ".yaml";

std::string_view model_name(const EmbeddedFile& file) {
  return file.name.substr(0, file.name.size() - kEnding.size());
}

}  // namespace

std::vector<std::string> zoo_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_zoo()) names.emplace_back(model_name(file));
  return names;
}

std::optional<std::string_view> zoo_text(std::string_view name) {
  for (const EmbeddedFile& file : embedded_zoo()) {
    if (model_name(file) == name) return file.text;
  }
  return std::nullopt;
}

std::string zoo_source(std::string_view name) { return fmt::format("zoo/{}{}", name, kEnding); }

bool is_from_zoo(const Place& place) {
  const std::vector<std::string> names = zoo_names();
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return place.source == zoo_source(name); });
}

}  // namespace troupe::config
