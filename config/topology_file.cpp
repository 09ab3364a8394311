#include "config/topology_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "config/override.h"
#include "config/shipped.h"
#include "config/topology_check.h"
#include "config/topology_fields.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/disk.h"
#include "runtime/base/utf8.h"

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

// Whether all of it is text.
bool is_text(const YamlValue& value) {
  return runtime::is_utf8(value.scalar) &&
         std::all_of(value.items.begin(), value.items.end(), is_text) &&
         std::all_of(value.members.begin(), value.members.end(), [](const YamlMember& member) {
           return runtime::is_utf8(member.key) && is_text(member.value);
         });
}

// The path of the field of a printed topology that most likely keeps it from being read: one that
// is no text, else the largest one.
std::string fault_of(const YamlValue& tree) {
  std::string largest;
  std::size_t most = 0;
  for (const YamlMember& section : tree.members) {
    const bool is_section = section.value.is_map();
    const std::vector<YamlMember> itself{section};
    for (const YamlMember& field : is_section ? section.value.members : itself) {
      const std::string path = is_section ? section.key + "." + field.key : section.key;
      if (!is_text(field.value)) return path;
      const std::size_t size = flow_yaml(field.value).size();
      if (size > most) largest = path;
      most = std::max(most, size);
    }
  }
  return largest;
}

// The answer to a folder in place of a topology.
std::string folder_refused(const std::string& path) {
  std::error_code ignored;
  const std::string own = path + (path.ends_with('/') ? "" : "/") + "topology.yaml";
  if (!std::filesystem::exists(own, ignored)) return "is a folder; give a topology file";
  return fmt::format(
      "is the folder of a run; troupe run --resume {} goes on with it, and its topology is {}",
      path, own);
}

}  // namespace

Result<std::string> read_topology_text(const std::string& path) {
  const auto refused = [&](const std::string& why) {
    return Error{ErrorKind::kTopology, path + ": " + why};
  };
  const auto last_error = [] { return std::error_code(errno, std::generic_category()).message(); };
  if (const auto shipped = shipped_text(path)) return std::string(*shipped);
  // A pipe without a writer would be waited for when it is opened.
  const runtime::Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.number(), &status) != 0) {
    const bool is_missing = errno == ENOENT;
    const std::string why = "cannot be opened: " + last_error();
    return refused(is_missing ? why + shipped_suggestion(path) : why);
  }
  if (S_ISDIR(status.st_mode)) return refused(folder_refused(path));
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode)) {
    return refused("is neither a file nor a pipe; give a topology file");
  }
  // One byte more tells that it is too large.
  auto text = runtime::read_text(file, kMostYamlBytes + 1);
  if (!text.ok()) return refused("cannot be read: " + text.error().message);
  if (text->empty() && S_ISFIFO(status.st_mode)) return refused("is a pipe that nobody writes to");
  if (text->size() > kMostYamlBytes) {
    return Error{ErrorKind::kTopology, too_large_text(path).text()};
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
  // The rest of a broken document would only raise problems that are none.
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

Result<void> check_printed(const LoadedTopology& loaded) {
  const std::string text = print_topology(loaded);
  const auto again = parse_topology(text, "topology.yaml", "/");
  if (again.ok()) return {};
  const std::string path = fault_of(topology_record().write(loaded.topology, Selection::kAll));
  const std::string& why = again.error().message;
  const std::string what =
      "the topology of a run is kept in its folder with every path in full, and there it could not "
      "be read again, so that the run could not be resumed: " +
      why.substr(0, why.find('\n'));
  return Error{ErrorKind::kTopology, problem_of(loaded.origins, path, what).text()};
}

}  // namespace troupe::config
