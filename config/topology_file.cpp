#include "config/topology_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "config/override.h"
#include "config/topology_check.h"
#include "config/topology_fields.h"
#include "config/zoo.h"

namespace troupe::config {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

Result<std::vector<Override>> parse_overrides(const std::vector<std::string>& texts,
                                              Problems& problems) {
  std::vector<Override> overrides;
  for (const std::string& text : texts) {
    const std::size_t before = problems.size();
    ASSIGN_OR_RETURN(Override parsed, parse_override(text, problems));
    if (problems.size() == before) overrides.push_back(std::move(parsed));
  }
  return overrides;
}

void apply_all(YamlValue& root, const std::vector<Override>& overrides, Problems& problems) {
  for (const Override& each : overrides) apply_override(root, each, problems);
}

// The name of the zoo model in effect: an override may have changed it.
std::string zoo_in_effect(YamlValue root, const std::vector<Override>& overrides) {
  Problems ignored;
  apply_all(root, overrides, ignored);
  const YamlValue* model = root.find("model");
  const YamlValue* zoo = model == nullptr ? nullptr : model->find("zoo");
  return zoo == nullptr ? std::string() : zoo->scalar;
}

// Lays the model section over that of the zoo. An unknown name is left for the model's record.
void lay_over_zoo(YamlValue& root, const std::string& zoo, Problems& problems) {
  const std::optional<std::string_view> text = zoo_text(zoo);
  if (!text) return;
  YamlValue base = parse_yaml(*text, zoo_source(zoo), problems);
  if (!root.is_map()) return;
  if (YamlValue* model = root.find("model")) {
    if (!model->is_null()) base = merge(std::move(base), *model);
    *model = std::move(base);
  } else {
    root.add("model", std::move(base));
  }
}

}  // namespace

Result<std::string> read_topology_text(const std::string& path) {
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) {
    return Error{ErrorKind::kTopology, path + ": is a folder; give a topology file"};
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (file == nullptr) {
    return Error{ErrorKind::kTopology,
                 fmt::format("{}: cannot be opened: {}", path,
                             std::error_code(errno, std::generic_category()).message())};
  }
  std::string text(kMostYamlBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) {
    return Error{ErrorKind::kTopology, path + ": cannot be read"};
  }
  return text;
}

Result<LoadedTopology> load_topology(const std::string& path,
                                     const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(const std::string text, read_topology_text(path));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return parse_topology(text, path, folder, overrides);
}

Result<LoadedTopology> parse_topology(std::string_view text, const std::string& source,
                                      const std::string& folder,
                                      const std::vector<std::string>& overrides) {
  Problems problems;
  ASSIGN_OR_RETURN(const std::vector<Override> parsed_overrides,
                   parse_overrides(overrides, problems));
  YamlValue root = parse_yaml(text, source, problems);
  // What remains of a broken document would only raise problems that are none.
  if (root.is_null() && !problems.empty()) return problems.error();
  if (root.is_null()) {
    return Error{ErrorKind::kTopology,
                 source + ": is empty; a topology needs at least model and data"};
  }
  lay_over_zoo(root, zoo_in_effect(root, parsed_overrides), problems);
  apply_all(root, parsed_overrides, problems);
  LoadedTopology loaded;
  Reader reader(problems, loaded.origins, folder);
  topology_record().read(root, loaded.topology, reader);
  if (!problems.empty()) return problems.error();
  derive(loaded.topology);
  return loaded;
}

std::string print_topology(const LoadedTopology& loaded) {
  YamlValue tree = topology_record().write(loaded.topology, Selection::kAll);
  annotate(tree, loaded.origins);
  return print_yaml(tree, true);
}

}  // namespace troupe::config
