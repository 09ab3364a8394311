#include "study/space_check.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "config/topology_fields.h"
#include "config/topology_file.h"
#include "config/yaml_value.h"

namespace troupe::study {
namespace {

using config::LoadedTopology;
using config::Problems;
using config::YamlValue;
using runtime::Result;

// Reads the study's topology with one setting, or none.
Result<LoadedTopology> topology_with(const LoadedStudy& loaded,
                                     const std::vector<std::string>& settings) {
  const std::string& path = loaded.study.topology;
  return config::parse_topology(loaded.topology_text, path,
                                std::filesystem::path(path).parent_path().string(), settings);
}

// All that it says. Where it came from means nothing.
YamlValue values_of(const config::Topology& topology) {
  return config::topology_record().write(topology, config::Selection::kAll);
}

void add_scalars(const YamlValue& value, std::set<std::string>& scalars) {
  if (value.is_scalar()) scalars.insert(value.scalar);
  for (const YamlValue& item : value.items) add_scalars(item, scalars);
  for (const config::YamlMember& member : value.members) add_scalars(member.value, scalars);
}

// A text in the setting that means another place wherever the study goes on; "": there is none. It
// is one if the topology has it with the current folder in front.
std::string relative_path(const std::string& setting, const YamlValue& written) {
  Problems none;
  std::set<std::string> given, made;
  add_scalars(config::parse_yaml(setting, "", none), given);
  add_scalars(written, made);
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  for (const std::string& text : given) {
    const std::filesystem::path path(text);
    if (text.empty() || path.is_absolute()) continue;
    if (made.contains((here / path).lexically_normal().string())) return text;
  }
  return "";
}

// Without the place, which is the setting itself, and without the lines behind the first.
std::string first_reason(const std::string& message, const std::string& setting) {
  const std::string line = message.substr(0, message.find('\n'));
  const std::size_t at = line.find(setting + ": ");
  return at == std::string::npos ? line : line.substr(at + setting.size() + 2);
}

// The bounds, or all values of a choice.
std::vector<double> values_to_try(const Dimension& dimension) {
  if (!dimension.choice) return {value_at(dimension, 0.0), value_at(dimension, 1.0)};
  std::vector<double> all;
  for (std::size_t i = 0; i < dimension.choice->size(); ++i) {
    all.push_back(static_cast<double>(i));
  }
  return all;
}

bool counts_epochs(const StopOptions& stop) {
  return stop.from.unit == config::Every::Unit::kEpochs;
}

// How far the topology trains, in the unit of the rungs; 0: it does not say.
std::uint64_t length_of(const StopOptions& stop, const config::Topology& topology) {
  return counts_epochs(stop) ? topology.train.epochs : topology.train.iterations.value_or(0);
}

class SpaceCheck {
 public:
  explicit SpaceCheck(const LoadedStudy& loaded) : loaded_(loaded) {}

  Result<config::Topology> check() {
    ASSIGN_OR_RETURN(LoadedTopology plain, topology_with(loaded_, {}));
    plain_ = std::move(plain.topology);
    if (const std::string why = why_not_shared(plain_); !why.empty()) add_problem("workers", why);
    if (plain_.checkpointer.copies) {
      add_problem("topology",
                  "its actors.checkpointer.copies is one place for all trials, which "
                  "would write over each other; leave it out");
    }
    for (const Dimension& dimension : loaded_.study.space) check_dimension(dimension);
    check_objective();
    if (study().stop.halves()) check_rungs();
    if (study().folds > 1) check_folds();
    if (problems_.empty()) return std::move(plain_);
    return problems_.error();
  }

 private:
  void add_problem(const std::string& field, const std::string& what) {
    const config::Problem made = config::problem_of(loaded_.origins, field, what);
    problems_.add(made.place, made.message);
  }

  // A field that exists only with values of another one is tried with each of these.
  void check_dimension(const Dimension& dimension) {
    bool always_validates = true;
    for (const std::vector<std::string>& others : settings_around(dimension)) {
      if (!check_values(dimension, others, always_validates)) return;
    }
    is_validation_set_ = is_validation_set_ || (always_validates && !dimension.only_with);
  }

  // The settings beside it: none or, of each value with which it exists, the settings that it
  // needs.
  std::vector<std::vector<std::string>> settings_around(const Dimension& dimension) const {
    if (!dimension.only_with) return {{}};
    const Condition& condition = *dimension.only_with;
    const auto other = std::ranges::find(study().space, condition.path, &Dimension::path);
    std::vector<std::vector<std::string>> all;
    for (const std::string& value : condition.values) {
      all.push_back(settings_around(*other).front());
      all.back().push_back(fmt::format("{}={}", condition.path, value));
    }
    return all;
  }

  // False: there is a problem.
  bool check_values(const Dimension& dimension, const std::vector<std::string>& others,
                    bool& always_validates) {
    const std::string field = "space." + dimension.path;
    const auto problem = [&](const std::string& what) {
      add_problem(field, what);
      return false;
    };
    std::set<std::string> effects;
    for (const double value : values_to_try(dimension)) {
      const std::string text = text_of(dimension, value);
      const std::string setting = fmt::format("{}={}", dimension.path, text);
      std::vector<std::string> settings = others;
      settings.push_back(setting);
      const auto made = topology_with(loaded_, settings);
      if (!made.ok()) {
        return problem(fmt::format("the topology does not take {} here: {}", text,
                                   first_reason(made.error().message, setting)));
      }
      always_validates = always_validates && validates(made->topology);
      const std::string conflict = conflict_of(text, made->topology);
      if (!conflict.empty()) return problem(conflict);
      const YamlValue written = values_of(made->topology);
      if (const std::string path = relative_path(text, written); !path.empty()) {
        return problem(
            fmt::format("{} depends on the folder in which the study goes on; write the "
                        "whole path, from the root",
                        path));
      }
      if (effects.insert(config::print_yaml(written)).second) continue;
      return problem(fmt::format("{} makes the same topology as a value before it", text));
    }
    return true;
  }

  static bool validates(const config::Topology& topology) {
    return topology.validator.every.unit != config::Every::Unit::kNever;
  }

  // What the study sets by itself no value may set, in whatever way; "": it does not.
  std::string conflict_of(const std::string& text, const config::Topology& made) const {
    if (study().seeds > 1 && made.train.options.seed != plain_.train.options.seed) {
      return "repeat.seeds gives every trial the same seeds; leave one of them out";
    }
    const pipeline::DatasetOptions &data = made.data.dataset, &plain = plain_.data.dataset;
    if (study().folds > 1 &&
        (data.test_one_in != plain.test_one_in || data.test_part != plain.test_part)) {
      return "repeat.folds sets which events are for testing; leave one of them out";
    }
    if (study().stop.halves() && (made.train.epochs != plain_.train.epochs ||
                                  made.train.iterations != plain_.train.iterations)) {
      return "halving sets from rung to rung how far a trial trains; leave one of them out";
    }
    if (const std::string why = why_not_shared(made); !why.empty()) return why;
    if (is_of_validation() && validates(plain_) && !validates(made)) {
      return fmt::format("with {} a trial has no validation, and so no figure", text);
    }
    return "";
  }

  // Why workers cannot come and go in such a topology without changing its bits; "": they can, or
  // shall not.
  std::string why_not_shared(const config::Topology& made) const {
    if (study().workers == 0) return why_not_beside(made.cluster);
    if (made.train.scaling != config::Scaling::kStrong || made.train.options.lossy) {
      return "workers may come and go only with train.scaling: strong and "
             "actors.reducer.reduction: "
             "exact, where they change no bit";
    }
    if (!made.cluster.hosts.empty()) {
      return "the workers are those of this machine and of pools; leave out cluster.hosts";
    }
    if (made.cluster.burst) {
      return "trials share the nodes of the pools, and cluster.burst would take some for each by "
             "itself; leave it out";
    }
    if (shared_part(made) != shared_part(plain_)) {
      return "all trials share cluster.pools and keys as the topology has them, and the study sets "
             "listen and joiners; leave them out";
    }
    return "";
  }

  // Why trials at a time need `workers`; "": they do not.
  std::string why_not_beside(const config::ClusterSection& cluster) const {
    if (study().parallel == 1 || cluster.pools.empty()) return "";
    return fmt::format(
        "each of {} trials at a time would take all nodes of the pools for itself; "
        "give the study workers, and the trials share the nodes, too",
        study().parallel);
  }

  // The part of the cluster that no trial has for itself, as it would be written.
  static std::string shared_part(const config::Topology& topology) {
    const YamlValue written = values_of(topology);
    const YamlValue* const cluster = written.find("cluster");
    std::string text;
    for (const char* key : {"pools", "keys", "listen", "joiners"}) {
      const YamlValue* const value = cluster == nullptr ? nullptr : cluster->find(key);
      if (value != nullptr) text += config::print_yaml(*value);
    }
    return text;
  }

  bool is_of_validation() const { return study().objective.of == FigureSource::kValidation; }

  void check_objective() {
    if (!is_of_validation() || validates(plain_) || is_validation_set_) return;
    add_problem(
        "objective",
        fmt::format("a run of {} has no validation (actors.validator.every: none); give it one "
                    "or take a figure `of: metrics`",
                    study().topology));
  }

  // There may be too few events for them. The first one tests with the fewest, the last one trains
  // on the fewest.
  void check_folds() {
    for (const std::uint32_t fold : {0u, study().folds - 1}) {
      const std::vector<std::string> settings = fold_settings(study().folds, fold);
      const auto made = topology_with(loaded_, settings);
      if (made.ok()) continue;
      return add_problem(
          "repeat.folds",
          fmt::format("the topology does not take {}: {}", fmt::join(settings, " and "),
                      first_reason(made.error().message, settings.front())));
    }
  }

  void check_rungs() {
    const StopOptions& stop = study().stop;
    const std::string field = counts_epochs(stop) ? "train.epochs" : "train.iterations";
    if (counts_epochs(stop) && plain_.train.iterations) {
      return add_problem("stop.from",
                         fmt::format("the topology's train.iterations ends trials after "
                                     "{}, whatever the epochs; leave it out, or count "
                                     "iterations",
                                     *plain_.train.iterations));
    }
    if (length_of(stop, plain_) == 0) {
      return add_problem("stop.from",
                         "the topology has no train.iterations, so that nobody knows how "
                         "far a trial goes; give it some, or count epochs");
    }
    if (rungs_of(study(), plain_).size() < 2) {
      add_problem("stop.from",
                  fmt::format("trials train no further than that: the topology's {} is {}", field,
                              length_of(stop, plain_)));
    }
  }

  const Study& study() const { return loaded_.study; }

  const LoadedStudy& loaded_;
  config::Topology plain_;          // without any setting
  bool is_validation_set_ = false;  // a field has only values with which a trial validates
  Problems problems_;
};

}  // namespace

Result<config::Topology> check_against_topology(const LoadedStudy& loaded) {
  return SpaceCheck(loaded).check();
}

std::vector<std::string> fold_settings(std::uint32_t folds, std::uint32_t number) {
  return {fmt::format("data.test_one_in={}", folds), fmt::format("data.test_part={}", number)};
}

std::vector<std::uint64_t> rungs_of(const Study& study, const config::Topology& topology) {
  if (!study.stop.halves()) return {0};
  const std::uint64_t length = length_of(study.stop, topology);
  std::vector<std::uint64_t> rungs;
  for (std::uint64_t at = study.stop.from.count; at < length; at *= study.stop.keep_one_in) {
    rungs.push_back(at);
  }
  rungs.push_back(length);
  return rungs;
}

}  // namespace troupe::study
