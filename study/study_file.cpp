#include "study/study_file.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "config/topology_file.h"
#include "config/topology_schema.h"
#include "runtime/base/disk.h"
#include "runtime/base/hash.h"
#include "study/space_check.h"
#include "study/study_fields.h"

namespace troupe::study {

using config::Problems;
using config::YamlValue;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

Result<LoadedStudy> load_study(const std::string& path) {
  const auto text = runtime::read_file(path, config::kMostYamlBytes);
  if (!text.ok()) return Error{ErrorKind::kTopology, text.error().message};
  return parse_study(*text, path, std::filesystem::path(path).parent_path().string());
}

Result<LoadedStudy> parse_study(std::string_view text, const std::string& source,
                                const std::string& folder) {
  Problems problems;
  const YamlValue root = config::parse_yaml(text, source, problems);
  if (root.is_null() && !problems.empty()) return problems.error();
  if (root.is_null()) {
    return Error{ErrorKind::kTopology,
                 source + ": is empty; a study needs at least topology, space and objective"};
  }
  LoadedStudy loaded;
  config::Reader reader(problems, loaded.origins, folder);
  study_record().read(root, loaded.study, reader);
  if (!problems.empty()) return problems.error();
  ASSIGN_OR_RETURN(loaded.topology_text, config::read_topology_text(loaded.study.topology));
  ASSIGN_OR_RETURN(const config::Topology topology, check_against_topology(loaded));
  loaded.train_seed = topology.train.options.seed;
  loaded.cluster = topology.cluster;
  loaded.rungs = rungs_of(loaded.study, topology);
  return loaded;
}

std::string print_study(const Study& study) {
  return config::print_yaml(study_record().write(study, config::Selection::kAll));
}

std::string study_hash(const LoadedStudy& loaded) {
  runtime::Hasher hasher;
  hasher.add(config::print_yaml(study_record().write(loaded.study, config::Selection::kState)));
  hasher.add(loaded.topology_text);
  return hasher.digest().text();
}

std::string study_schema_json() {
  return config::schema_json("Troupe study", study_record().describe());
}

std::string study_reference() {
  const config::TypeDescription study = study_record().describe();
  const auto space = std::ranges::find(study.fields, "space", &config::FieldDescription::name);
  return config::reference_of(study) + "\n### `space`, each\n" + config::reference_of_each(*space);
}

}  // namespace troupe::study
