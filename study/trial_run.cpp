#include "study/trial_run.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/place.h"
#include "launch/folder/metrics_file.h"
#include "launch/folder/run_folder.h"
#include "launch/processes/command.h"
#include "runtime/base/json_reader.h"
#include "telemetry/record.h"

namespace troupe::study {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr const char* kValidation = "validation/";
constexpr std::size_t kMostError = 1000;

// The name of a validation's figure as a series (telemetry/record.h).
std::string series_of(const Objective& objective) {
  if (objective.of != FigureSource::kValidation) return objective.figure();
  return kValidation + (objective.figure() == "merit" ? std::string("total") : objective.figure());
}

// How far a rung trains, as a setting; "": as the topology says.
std::string length_of(const LoadedStudy& loaded, std::uint32_t rung) {
  const StopOptions& stop = loaded.study.stop;
  if (!stop.halves()) return "";
  const bool is_of_epochs = stop.from.unit == config::Every::Unit::kEpochs;
  return fmt::format("{}={}", is_of_epochs ? "train.epochs" : "train.iterations",
                     loaded.rungs.at(rung));
}

// The last value of every series.
std::map<std::string, double> last_values(const std::string& folder) {
  std::map<std::string, double> values;
  std::ifstream in(folder + "/" + launch::MetricsFile::kName, std::ios::binary);
  for (std::string line; std::getline(in, line);) {
    const auto record = telemetry::read_record(line);
    if (!record.ok()) continue;
    for (const telemetry::RecordPoint& point : telemetry::points_of(*record)) {
      values[point.series] = point.value;
    }
  }
  return values;
}

std::map<std::string, double> numbers_of(const std::string& summary) {
  std::map<std::string, double> values;
  const nlohmann::json parsed = runtime::parse_json(summary);
  if (!parsed.is_object()) return values;
  for (const auto& [name, value] : parsed.items()) {
    if (value.is_number()) values[name] = value.get<double>();
  }
  return values;
}

struct Summary {
  std::optional<std::string> error, state_hash;
};
template <class Archive>
void fields(Archive& archive, runtime::Like<Summary> auto& summary) {
  archive.perhaps("error", summary.error);
  archive.perhaps("state_hash", summary.state_hash);
}

// Why a run has failed, by what it says and by how it has ended.
std::string error_of(const Summary& summary, const RunEnd& end) {
  std::string why = summary.error.value_or("");
  if (why.empty() && end.end.signal == 0) why = end.last_error;
  if (why.empty()) why = "the run " + end.end.text();
  return launch::shown_line(why, kMostError);
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
  if (const std::string length = length_of(loaded, run.rung); !length.empty()) {
    overrides.push_back(length);
  }
  return overrides;
}

// A run that is there has all settings, and may only train further.
std::vector<std::string> run_words(const LoadedStudy& loaded, const Point& point, RunNumber run,
                                   const std::string& folder) {
  std::vector<std::string> words{"run", loaded.study.topology}, settings;
  if (launch::RunFolder::check(folder).ok()) {
    words = {"run", "--resume", folder};
    if (loaded.study.stop.halves()) settings.push_back(length_of(loaded, run.rung));
  } else {
    words.insert(words.end(), {"--out", folder});
    settings = overrides_of(loaded, point, run);
  }
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  words.emplace_back("--json");
  return words;
}

RunResult result_of(const Objective& objective, const std::string& folder, const RunEnd& end) {
  Summary summary;
  runtime::read_json(end.summary, summary);
  RunResult result;
  result.seconds = end.seconds;
  result.state_hash = summary.state_hash.value_or("");
  result.exit_code = end.end.signal == 0 ? end.end.exit_code : 128 + end.end.signal;
  if (result.exit_code != 0) {
    result.error = error_of(summary, end);
    return result;
  }
  const auto figure = read_figure(objective, folder, end.summary);
  if (figure.ok()) result.figure = *figure;
  if (!figure.ok()) result.error = figure.error().message;
  return result;
}

Result<double> read_figure(const Objective& objective, const std::string& folder,
                           const std::string& summary) {
  const bool is_of_summary = objective.of == FigureSource::kSummary;
  const auto values = is_of_summary ? numbers_of(summary) : last_values(folder);
  const auto found = values.find(series_of(objective));
  if (found != values.end() && std::isfinite(found->second)) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, value] : values) {
    if (objective.of != FigureSource::kValidation) names.push_back(name);
    if (objective.of == FigureSource::kValidation && name.starts_with(kValidation)) {
      names.push_back(name.substr(std::string_view(kValidation).size()));
    }
  }
  const std::string what = names.empty() ? "; it has none at all" : "";
  return Error{ErrorKind::kData,
               launch::shown_line(fmt::format("the run has no figure {}{}{}", objective.figure(),
                                              what, config::suggestion(objective.figure(), names)),
                                  kMostError)};
}

}  // namespace troupe::study
