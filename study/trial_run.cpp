#include "study/trial_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/place.h"
#include "launch/folder/metrics_file.h"
#include "launch/folder/run_folder.h"
#include "launch/processes/command.h"
#include "runtime/base/disk.h"
#include "runtime/base/json_reader.h"
#include "runtime/base/json_text.h"
#include "study/space_check.h"
#include "telemetry/record.h"

namespace troupe::study {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr const char* kValidation = "validation/";
constexpr const char* kMerit = "merit";  // as people call validation/total
constexpr const char* kTotal = "total";
constexpr std::size_t kMostError = 1000;
// Places of one run for those that join it. One that has left keeps its place for a moment, and
// each process has room for all, which is some 0.2 MB for each.
constexpr std::uint32_t kMostJoiners = 500, kJoinersPerWorker = 4;
constexpr std::size_t kMostPoints = 200;  // of a curve
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// The name of a validation's figure as a series (telemetry/record.h).
std::string series_of(const Objective& objective) {
  if (objective.of != FigureSource::kValidation) return objective.figure();
  return kValidation + (objective.figure() == kMerit ? kTotal : objective.figure());
}

bool counts_epochs(const LoadedStudy& loaded) {
  return loaded.study.stop.from.unit == config::Every::Unit::kEpochs;
}

// How far a rung trains, as a setting; "": as the topology says.
std::string length_of(const LoadedStudy& loaded, std::uint32_t rung) {
  if (!loaded.study.stop.halves()) return "";
  return fmt::format("{}={}", counts_epochs(loaded) ? "train.epochs" : "train.iterations",
                     loaded.rungs.at(rung));
}

// What a validation before it had is not its own. One that tells of the figure may have no number
// for it.
void forget_validation(const telemetry::ValidationFacts& next, const Objective& objective,
                       std::map<std::string, double>& values) {
  for (auto& [series, value] : values) {
    if (series.starts_with(kValidation)) value = kNoNumber;
  }
  const bool tells =
      next.json.find(fmt::format("\"{}\":", objective.figure())) != std::string::npos;
  if (tells && objective.of == FigureSource::kValidation) values[series_of(objective)] = kNoNumber;
}

// A run's figures, from the beginning on.
void each_record(const std::string& folder,
                 const std::function<void(const telemetry::Record&)>& take) {
  std::ifstream in(folder + "/" + launch::MetricsFile::kName, std::ios::binary);
  for (std::string line; std::getline(in, line);) {
    if (const auto record = telemetry::read_record(line); record.ok()) take(*record);
  }
}

// The last value of every series that was ever told; one of an earlier validation alone is no
// number.
std::map<std::string, double> last_values(const Objective& objective, const std::string& folder) {
  std::map<std::string, double> values;
  each_record(folder, [&](const telemetry::Record& record) {
    if (const auto* validation = std::get_if<telemetry::ValidationFacts>(&record.body)) {
      forget_validation(*validation, objective, values);
    }
    for (const telemetry::RecordPoint& point : telemetry::points_of(record)) {
      values[point.series] = point.value;
    }
  });
  return values;
}

// Those within other objects have the names of these before them: bill.cost.
void add_numbers(const nlohmann::json& object, const std::string& before,
                 std::map<std::string, double>& values) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_number()) values[before + name] = value.get<double>();
    if (value.is_null()) values[before + name] = kNoNumber;
    if (value.is_object()) add_numbers(value, before + name + ".", values);
  }
}

std::map<std::string, double> numbers_of(const std::string& summary) {
  std::map<std::string, double> values;
  const nlohmann::json parsed = runtime::parse_json(summary);
  if (parsed.is_object()) add_numbers(parsed, "", values);
  return values;
}

struct Summary {
  std::optional<std::string> error, state_hash, ended_early;
  std::optional<std::uint64_t> epochs, iterations;
  bool stopped = true;
  int exit_code = -1;
};
template <class Archive>
void fields(Archive& archive, runtime::Like<Summary> auto& summary) {
  archive.perhaps("error", summary.error);
  archive.perhaps("state_hash", summary.state_hash);
  archive.perhaps("ended_early", summary.ended_early);
  archive.perhaps("epochs", summary.epochs);
  archive.perhaps("iterations", summary.iterations);
  archive.flag("stopped", summary.stopped);
  archive.integer("exit_code", summary.exit_code);
}

// Whether the run has trained as far as its rung goes. Without halving there is nothing to compare.
bool has_reached(const LoadedStudy& loaded, RunNumber run, const Summary& summary) {
  if (!loaded.study.stop.halves() || summary.ended_early) return true;
  const auto trained = counts_epochs(loaded) ? summary.epochs : summary.iterations;
  return trained.value_or(0) >= loaded.rungs.at(run.rung);
}

// The --set of a run whose members come and go.
std::vector<std::string> settings_of_members(const LoadedStudy& loaded, const std::string& listen) {
  // Quoted, since "*" and "[::1]" say something else in YAML.
  std::vector<std::string> settings{"cluster.listen=" + runtime::json_string(listen)};
  std::uint32_t workers = loaded.study.workers;
  for (std::size_t i = 0; i < loaded.cluster.pools.size(); ++i) {
    const config::PoolSection& pool = loaded.cluster.pools[i];
    workers += pool.nodes * pool.workers;
    settings.push_back(fmt::format("cluster.pools.{}.nodes=0", i));
    if (pool.nodes == 0) continue;
    settings.push_back(fmt::format("cluster.pools.{}.most={}", i, pool.nodes));
  }
  settings.push_back(
      fmt::format("cluster.joiners={}", std::min(kMostJoiners, kJoinersPerWorker * workers)));
  return settings;
}

// Why a run has failed, by what it says and by how it has ended.
std::string error_of(const Summary& summary, const RunEnd& end) {
  std::string why = summary.error.value_or("");
  if (why.empty() && end.end.signal == 0) why = end.last_error;
  if (why.empty()) why = "the run " + end.end.text();
  return launch::shown_line(why, kMostError);
}

// A broken promise; or, once it has begun to train, its folder, a disk or an address. Before that
// the same exit codes tell of settings that its data or the machine do not take.
bool is_of_machine(const launch::ChildEnd& end, const std::string& folder) {
  if (end.signal != 0) return false;
  const auto is = [&](ErrorKind kind) { return end.exit_code == runtime::exit_code(kind); };
  if (is(ErrorKind::kInternal)) return true;
  return (is(ErrorKind::kUsage) || is(ErrorKind::kData)) && launch::RunFolder::check(folder).ok();
}

}  // namespace

std::vector<std::string> overrides_of(const LoadedStudy& loaded, const Point& point,
                                      RunNumber run) {
  std::vector<std::string> overrides;
  for (const auto& [path, value] : settings_of(loaded.study.space, point)) {
    overrides.push_back(fmt::format("{}={}", path, value));
  }
  if (loaded.study.seeds > 1) {
    overrides.push_back(fmt::format("train.seed={}", loaded.train_seed + run.repeat));
  }
  if (loaded.study.folds > 1) {
    for (std::string& setting : fold_settings(loaded.study.folds, run.repeat)) {
      overrides.push_back(std::move(setting));
    }
  }
  if (const std::string length = length_of(loaded, run.rung); !length.empty()) {
    overrides.push_back(length);
  }
  return overrides;
}

// A run that is there has all settings, and may only train further.
std::vector<std::string> run_words(const LoadedStudy& loaded, const Point& point, RunNumber run,
                                   const std::string& folder, const std::string& listen) {
  std::vector<std::string> words{"run", loaded.study.topology}, settings;
  if (launch::RunFolder::check(folder).ok()) {
    words = {"run", "--resume", folder};
    if (loaded.study.stop.halves()) settings.push_back(length_of(loaded, run.rung));
  } else {
    words.insert(words.end(), {"--out", folder});
    settings = overrides_of(loaded, point, run);
  }
  if (!listen.empty()) {
    for (std::string& setting : settings_of_members(loaded, listen)) {
      settings.push_back(std::move(setting));
    }
    words.insert(words.end(), {"--workers", "1"});
  }
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  words.emplace_back("--json");
  return words;
}

RunFound found_by(const LoadedStudy& loaded, RunNumber run, const std::string& folder,
                  const RunEnd& end) {
  using Fault = RunFound::Fault;
  Summary summary;
  runtime::read_json(end.summary, summary);
  RunFound found;
  RunResult& result = found.result;
  result.seconds = end.seconds;
  result.state_hash = summary.state_hash.value_or("");
  result.exit_code = end.end.signal == 0 ? end.end.exit_code : 128 + end.end.signal;
  if (result.exit_code != 0) {
    result.error = error_of(summary, end);
    if (is_of_machine(end.end, folder)) found.fault = Fault::kMachine;
    return found;
  }
  if (!has_reached(loaded, run, summary)) {
    result.error = fmt::format(
        "the run ends before its rung, which is {}: {} of the topology ends it",
        length_of(loaded, run.rung), counts_epochs(loaded) ? "train.iterations" : "train.epochs");
    found.fault = Fault::kEndsEarly;
    return found;
  }
  const auto figure = read_figure(loaded.study.objective, folder, end.summary);
  if (figure.ok()) {
    result.figure = *figure;
    return found;
  }
  result.error = figure.error().message;
  if (figure.error().kind == ErrorKind::kTopology) found.fault = Fault::kNoFigure;
  return found;
}

// A run that goes on removes it before it trains.
std::string whole_summary(const LoadedStudy& loaded, RunNumber run, const std::string& folder) {
  const auto text = runtime::read_file(folder + "/" + launch::RunFolder::kSummary, kMostSummary);
  Summary summary;
  if (!text.ok() || !runtime::read_json(*text, summary)) return "";
  const bool is_whole = summary.exit_code == 0 && !summary.stopped && !summary.error;
  return is_whole && has_reached(loaded, run, summary) ? *text : "";
}

Result<double> read_figure(const Objective& objective, const std::string& folder,
                           const std::string& summary) {
  const bool is_of_summary = objective.of == FigureSource::kSummary;
  const auto values = is_of_summary ? numbers_of(summary) : last_values(objective, folder);
  const auto found = values.find(series_of(objective));
  if (found != values.end() && std::isfinite(found->second)) return found->second;
  if (found != values.end()) {
    return Error{ErrorKind::kData,
                 fmt::format("the run has no number for {} at its end", objective.figure())};
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : values) {
    if (objective.of != FigureSource::kValidation) names.push_back(name);
    if (objective.of == FigureSource::kValidation && name.starts_with(kValidation)) {
      const std::string figure = name.substr(std::string_view(kValidation).size());
      names.push_back(figure == kTotal ? kMerit : figure);
    }
  }
  const std::string what = names.empty() ? "; it has none at all" : "";
  return Error{ErrorKind::kTopology,
               launch::shown_line(fmt::format("the run has no figure {}{}{}", objective.figure(),
                                              what, config::suggestion(objective.figure(), names)),
                                  kMostError)};
}

// A step that was told again, by a run that went on, counts once.
Curve read_curve(const Objective& objective, std::uint32_t trial, const std::string& folder) {
  Curve curve{trial, {}};
  if (objective.of == FigureSource::kSummary) return curve;
  std::map<double, double> told;
  each_record(folder, [&](const telemetry::Record& record) {
    for (const telemetry::RecordPoint& point : telemetry::points_of(record)) {
      if (point.series != series_of(objective) || !std::isfinite(point.value)) continue;
      told[static_cast<double>(record.step)] = point.value;
    }
  });
  const std::vector<std::pair<double, double>> all(told.begin(), told.end());
  const std::size_t count = std::min(all.size(), kMostPoints);
  // The first and the last among them.
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = count < 2 ? 0 : i * (all.size() - 1) / (count - 1);
    curve.points.push_back(all[at]);
  }
  return curve;
}

}  // namespace troupe::study
