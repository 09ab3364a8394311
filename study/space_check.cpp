#include "study/space_check.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "config/topology_fields.h"
#include "config/topology_file.h"

namespace troupe::study {
namespace {

using config::LoadedTopology;
using config::Problems;
using runtime::Result;

// Reads the study's topology with one setting, or none.
Result<LoadedTopology> topology_with(const LoadedStudy& loaded,
                                     const std::vector<std::string>& settings) {
  const std::string& path = loaded.study.topology;
  return config::parse_topology(loaded.topology_text, path,
                                std::filesystem::path(path).parent_path().string(), settings);
}

// All that it says. Where it came from means nothing.
std::string values_of(const LoadedTopology& loaded) {
  return config::print_yaml(
      config::topology_record().write(loaded.topology, config::Selection::kAll));
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
    for (const Dimension& dimension : loaded_.study.space) check_dimension(dimension);
    check_objective(plain.topology);
    if (loaded_.study.stop.halves()) check_rungs(plain.topology);
    if (problems_.empty()) return std::move(plain.topology);
    return problems_.error();
  }

 private:
  void problem(const std::string& field, const std::string& what) {
    const config::Problem made = config::problem_of(loaded_.origins, field, what);
    problems_.add(made.place, made.message);
  }

  void check_dimension(const Dimension& dimension) {
    const std::string field = "space." + dimension.path;
    if (loaded_.study.seeds > 1 && dimension.path == "train.seed") {
      return problem(field, "repeat.seeds gives every trial the same seeds; leave one of them out");
    }
    std::set<std::string> effects;
    for (const double value : values_to_try(dimension)) {
      const std::string setting = fmt::format("{}={}", dimension.path, text_of(dimension, value));
      const auto made = topology_with(loaded_, {setting});
      if (!made.ok()) {
        return problem(
            field, fmt::format("the topology does not take {} here: {}", text_of(dimension, value),
                               first_reason(made.error().message, setting)));
      }
      if (effects.insert(values_of(*made)).second) continue;
      return problem(field, fmt::format("{} makes the same topology as a value before it",
                                        text_of(dimension, value)));
    }
  }

  void check_objective(const config::Topology& topology) {
    const bool validates = topology.validator.every.unit != config::Every::Unit::kNever;
    const bool is_varied = std::ranges::any_of(loaded_.study.space, [](const Dimension& dimension) {
      return dimension.path.starts_with("actors.validator");
    });
    const bool is_of_validation = loaded_.study.objective.of == FigureSource::kValidation;
    if (!is_of_validation || validates || is_varied) return;
    problem("objective",
            fmt::format("a run of {} has no validation (actors.validator.every: none); give it one "
                        "or take a figure `of: metrics`",
                        loaded_.study.topology));
  }

  void check_rungs(const config::Topology& topology) {
    const bool is_of_epochs = counts_epochs(loaded_.study.stop);
    const std::string field = is_of_epochs ? "train.epochs" : "train.iterations";
    if (length_of(loaded_.study.stop, topology) == 0) {
      return problem("stop.from",
                     "the topology has no train.iterations, so that nobody knows how "
                     "far a trial goes; give it some, or count epochs");
    }
    if (rungs_of(loaded_.study, topology).size() < 2) {
      problem("stop.from", fmt::format("trials train no further than that: the topology's {} is {}",
                                       field, length_of(loaded_.study.stop, topology)));
    }
    for (const Dimension& dimension : loaded_.study.space) {
      if (dimension.path != field) continue;
      problem("space." + field, "halving sets it from rung to rung; leave one of them out");
    }
  }

  const LoadedStudy& loaded_;
  Problems problems_;
};

}  // namespace

Result<config::Topology> check_against_topology(const LoadedStudy& loaded) {
  return SpaceCheck(loaded).check();
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
