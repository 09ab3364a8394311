#include "tests/repository/layers.h"

#include <map>
#include <optional>
#include <regex>
#include <set>

namespace troupe::repository {
namespace {

// Every layer and what it may include, itself among them.
const std::map<std::string, std::set<std::string>>& visible_layers() {
  static const std::map<std::string, std::set<std::string>> kVisible = {
      {"base", {"base"}},
      {"runtime", {"base", "runtime"}},
      {"telemetry", {"base", "telemetry"}},
      {"model", {"base", "model"}},
      {"pipeline", {"base", "model", "pipeline"}},
      {"config", {"base", "runtime", "telemetry", "model", "pipeline", "config"}},
      {"actors", {"base", "runtime", "telemetry", "model", "pipeline", "config", "actors"}},
      {"launch",
       {"base", "runtime", "telemetry", "model", "pipeline", "config", "actors", "launch"}},
      {"study",
       {"base", "runtime", "telemetry", "model", "pipeline", "config", "actors", "launch",
        "study"}},
      {"main",
       {"base", "runtime", "telemetry", "model", "pipeline", "config", "actors", "launch", "study",
        "main"}},
  };
  return kVisible;
}

// "base" for runtime/base/..., else the first folder when it is a layer.
std::optional<std::string> layer_of(const std::string& path) {
  if (path.starts_with("runtime/base/")) return "base";
  const std::string folder = path.substr(0, path.find('/'));
  if (visible_layers().contains(folder)) return folder;
  return std::nullopt;
}

// Why the layer refuses the include, or nothing.
std::optional<std::string> refusal(const std::string& layer, const std::string& included,
                                   bool in_quotes, bool exists) {
  const std::optional<std::string> target = layer_of(included);
  if (!in_quotes && !exists) return std::nullopt;  // a library's header
  if (!in_quotes) return "own headers are included in quotes";
  if (!exists) return "own headers are named by their path from the repository's root";
  if (!target) return "a layer includes nothing outside the layers";
  if (!visible_layers().at(layer).contains(*target))
    return *target + " is not visible from " + layer;
  return std::nullopt;
}

}  // namespace

const std::vector<std::string>& layer_folders() {
  static const std::vector<std::string> kFolders = {
      "runtime", "telemetry", "model", "pipeline", "config", "actors", "launch", "study", "main"};
  return kFolders;
}

std::vector<std::string> refused_includes(const SourceFile& file,
                                          const std::function<bool(const std::string&)>& exists) {
  static const std::regex kInclude(R"re(\s*#\s*include\s*(["<])([^">]+)[">].*)re");
  const std::optional<std::string> layer = layer_of(file.path);
  if (!layer) return {};
  std::vector<std::string> refused;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    std::smatch match;
    if (!std::regex_match(file.lines[i], match, kInclude)) continue;
    const std::string included = match[2];
    const std::optional<std::string> why =
        refusal(*layer, included, match[1] == "\"", exists(included));
    if (why)
      refused.push_back(file.path + ":" + std::to_string(i + 1) + ": " + included + ": " + *why);
  }
  return refused;
}

}  // namespace troupe::repository
