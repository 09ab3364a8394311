#include "study/optuna_storage.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/json_reader.h"
#include "study/sqlite_database.h"
#include "study/study_report.h"

namespace troupe::study {
namespace {

using nlohmann::json;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr std::int64_t kSchema = 12;
constexpr const char* kRevision = "v3.0.0.d";  // the same for Alembic

// As Optuna 3.1 makes them (optuna/storages/_rdb/models.py).
constexpr const char* kTables[] = {
    "CREATE TABLE studies (study_id INTEGER NOT NULL, study_name VARCHAR(512) NOT NULL, "
    "PRIMARY KEY (study_id))",
    "CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name)",
    "CREATE TABLE version_info (version_info_id INTEGER NOT NULL, schema_version INTEGER, "
    "library_version VARCHAR(256), PRIMARY KEY (version_info_id), CHECK (version_info_id=1))",
    "CREATE TABLE study_directions (study_direction_id INTEGER NOT NULL, direction VARCHAR(8) NOT "
    "NULL, study_id INTEGER NOT NULL, objective INTEGER NOT NULL, PRIMARY KEY "
    "(study_direction_id), UNIQUE (study_id, objective), FOREIGN KEY(study_id) REFERENCES studies "
    "(study_id))",
    "CREATE TABLE study_user_attributes (study_user_attribute_id INTEGER NOT NULL, study_id "
    "INTEGER, \"key\" VARCHAR(512), value_json TEXT, PRIMARY KEY (study_user_attribute_id), UNIQUE "
    "(study_id, \"key\"), FOREIGN KEY(study_id) REFERENCES studies (study_id))",
    "CREATE TABLE study_system_attributes (study_system_attribute_id INTEGER NOT NULL, study_id "
    "INTEGER, \"key\" VARCHAR(512), value_json TEXT, PRIMARY KEY (study_system_attribute_id), "
    "UNIQUE (study_id, \"key\"), FOREIGN KEY(study_id) REFERENCES studies (study_id))",
    "CREATE TABLE trials (trial_id INTEGER NOT NULL, number INTEGER, study_id INTEGER, state "
    "VARCHAR(8) NOT NULL, datetime_start DATETIME, datetime_complete DATETIME, PRIMARY KEY "
    "(trial_id), FOREIGN KEY(study_id) REFERENCES studies (study_id))",
    "CREATE TABLE trial_user_attributes (trial_user_attribute_id INTEGER NOT NULL, trial_id "
    "INTEGER, \"key\" VARCHAR(512), value_json TEXT, PRIMARY KEY (trial_user_attribute_id), UNIQUE "
    "(trial_id, \"key\"), FOREIGN KEY(trial_id) REFERENCES trials (trial_id))",
    "CREATE TABLE trial_system_attributes (trial_system_attribute_id INTEGER NOT NULL, trial_id "
    "INTEGER, \"key\" VARCHAR(512), value_json TEXT, PRIMARY KEY (trial_system_attribute_id), "
    "UNIQUE (trial_id, \"key\"), FOREIGN KEY(trial_id) REFERENCES trials (trial_id))",
    "CREATE TABLE trial_params (param_id INTEGER NOT NULL, trial_id INTEGER, param_name "
    "VARCHAR(512), param_value FLOAT, distribution_json TEXT, PRIMARY KEY (param_id), UNIQUE "
    "(trial_id, param_name), FOREIGN KEY(trial_id) REFERENCES trials (trial_id))",
    "CREATE TABLE trial_values (trial_value_id INTEGER NOT NULL, trial_id INTEGER NOT NULL, "
    "objective INTEGER NOT NULL, value FLOAT, value_type VARCHAR(7) NOT NULL, PRIMARY KEY "
    "(trial_value_id), UNIQUE (trial_id, objective), FOREIGN KEY(trial_id) REFERENCES trials "
    "(trial_id))",
    "CREATE TABLE trial_intermediate_values (trial_intermediate_value_id INTEGER NOT NULL, "
    "trial_id "
    "INTEGER NOT NULL, step INTEGER NOT NULL, intermediate_value FLOAT, intermediate_value_type "
    "VARCHAR(7) NOT NULL, PRIMARY KEY (trial_intermediate_value_id), UNIQUE (trial_id, step), "
    "FOREIGN KEY(trial_id) REFERENCES trials (trial_id))",
    "CREATE TABLE trial_heartbeats (trial_heartbeat_id INTEGER NOT NULL, trial_id INTEGER NOT "
    "NULL, "
    "heartbeat DATETIME NOT NULL, PRIMARY KEY (trial_heartbeat_id), UNIQUE (trial_id), FOREIGN "
    "KEY(trial_id) REFERENCES trials (trial_id))",
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT "
    "alembic_version_pkc PRIMARY KEY (version_num))"};

// A distribution, as Optuna calls it.
std::string distribution_of(const Dimension& dimension) {
  json attributes;
  const char* name = "FloatDistribution";
  if (dimension.choice) {
    name = "CategoricalDistribution";
    attributes["choices"] = *dimension.choice;
  } else if (dimension.integer) {
    name = "IntDistribution";
    // Its upper bound is one of the values.
    const double last = value_at(dimension, 1.0);
    attributes = {{"log", false},
                  {"step", dimension.step},
                  {"low", dimension.integer->front()},
                  {"high", static_cast<std::int64_t>(last)}};
  } else {
    const auto [low, high] = dimension.log ? *dimension.log : *dimension.linear;
    attributes = {
        {"step", nullptr}, {"low", low}, {"high", high}, {"log", dimension.log.has_value()}};
  }
  return json{{"name", name}, {"attributes", attributes}}.dump();
}

// "2026-11-27T06:04:01.458Z" as "2026-11-27 06:04:01.458000"; "" stays what it is.
std::string sql_time(std::string time) {
  if (time.size() < 11) return "";
  time[10] = ' ';
  if (time.back() == 'Z') time.pop_back();
  return time.find('.') == std::string::npos ? time + ".000000" : time + "000";
}

struct Times {
  std::string begin, end;
};
std::map<std::uint32_t, Times> times_in(const std::vector<JournalLine>& lines) {
  std::map<std::uint32_t, Times> times;
  for (const JournalLine& line : lines) {
    if (const auto* begin = std::get_if<BeginLine>(&line)) {
      Times& own = times[begin->run.trial];
      if (own.begin.empty()) own.begin = sql_time(begin->time);
    } else if (const auto* end = std::get_if<EndLine>(&line)) {
      times[end->run.trial].end = sql_time(end->time);
    }
  }
  return times;
}

class StorageWriter {
 public:
  StorageWriter(SqliteDatabase& database, const LoadedStudy& loaded, const TrialBook& book)
      : database_(database), loaded_(loaded), book_(book) {}

  Result<void> write(const std::vector<JournalLine>& lines) {
    for (const char* table : kTables) RETURN_IF_ERROR(database_.run(table));
    RETURN_IF_ERROR(insert("alembic_version", {std::string(kRevision)}));
    RETURN_IF_ERROR(insert("version_info", {std::int64_t{1}, kSchema, std::string("3.1.0")}));
    const Study& study = loaded_.study;
    RETURN_IF_ERROR(insert("studies", {std::int64_t{1}, study.name}));
    const std::string direction = study.objective.minimise ? "MINIMIZE" : "MAXIMIZE";
    RETURN_IF_ERROR(
        insert("study_directions", {std::int64_t{1}, direction, std::int64_t{1}, std::int64_t{0}}));
    for (const auto& [key, value] :
         {std::pair("figure", study.objective.figure()), std::pair("topology", study.topology)}) {
      RETURN_IF_ERROR(insert("study_user_attributes", {std::monostate{}, std::int64_t{1},
                                                       std::string(key), json(value).dump()}));
    }
    const std::map<std::uint32_t, Times> times = times_in(lines);
    for (std::uint32_t i = 0; i < book_.trials().size(); ++i) {
      const auto own = times.find(i);
      RETURN_IF_ERROR(write_trial(i, own == times.end() ? Times{} : own->second));
    }
    return {};
  }

 private:
  Result<void> insert(const std::string& table, const SqlRow& values) {
    std::string marks = "?";
    for (std::size_t i = 1; i < values.size(); ++i) marks += ", ?";
    RETURN_IF_ERROR(database_.run(fmt::format("INSERT INTO {} VALUES ({})", table, marks), values));
    return {};
  }

  static std::string state_word(const std::string& state) {
    if (state == "done") return "COMPLETE";
    if (state == "left") return "PRUNED";
    return state == "failed" ? "FAIL" : "RUNNING";
  }

  Result<void> write_trial(std::uint32_t number, const Times& times) {
    const Trial& trial = book_.trials()[number];
    const std::int64_t id = std::int64_t{number} + 1;
    const std::string state = state_word(state_of(book_, trial));
    // One that has not begun yet waits.
    const bool has_begun = !times.begin.empty();
    const SqlValue end = state == "RUNNING" ? SqlValue() : SqlValue(times.end);
    RETURN_IF_ERROR(insert("trials", {id, std::int64_t{number}, std::int64_t{1},
                                      has_begun ? state : std::string("WAITING"),
                                      has_begun ? SqlValue(times.begin) : SqlValue(), end}));
    const Space& space = loaded_.study.space;
    for (std::size_t i = 0; i < space.size() && has_begun; ++i) {
      if (trial.point[i] == kAbsent) continue;
      RETURN_IF_ERROR(insert("trial_params", {std::monostate{}, id, space[i].path, trial.point[i],
                                              distribution_of(space[i])}));
    }
    RETURN_IF_ERROR(write_figures(trial, id));
    const Job& last = book_.last_job(trial);
    if (last.results.empty()) return {};
    const RunResult& result = last.results.back();
    return write_attribute(id, result.error.empty() ? "state_hash" : "error",
                           json(result.error.empty() ? result.state_hash : result.error));
  }

  Result<void> write_figures(const Trial& trial, std::int64_t id) {
    for (const std::uint32_t number : trial.jobs) {
      const Job& job = book_.jobs()[number];
      const auto figure = book_.figure(job);
      if (!figure || book_.rungs() == 1) continue;
      const auto step = static_cast<std::int64_t>(loaded_.rungs.at(job.rung));
      RETURN_IF_ERROR(insert("trial_intermediate_values",
                             {std::monostate{}, id, step, figure->mean, std::string("FINITE")}));
    }
    const auto figure = book_.figure(trial);
    if (!figure) return {};
    RETURN_IF_ERROR(insert("trial_values", {std::monostate{}, id, std::int64_t{0}, figure->mean,
                                            std::string("FINITE")}));
    if (!figure->deviation) return {};
    return write_attribute(id, "deviation", json(*figure->deviation));
  }

  Result<void> write_attribute(std::int64_t id, const char* key, const json& value) {
    // A program's words may be no UTF-8.
    return insert("trial_user_attributes",
                  {std::monostate{}, id, std::string(key),
                   value.dump(-1, ' ', false, json::error_handler_t::replace)});
  }

  SqliteDatabase& database_;
  const LoadedStudy& loaded_;
  const TrialBook& book_;
};

// Column `number` of a row, of one kind; nothing: it is of another one.
template <class T>
const T* column(const SqlRow& row, std::size_t number) {
  return number < row.size() ? std::get_if<T>(&row[number]) : nullptr;
}
std::optional<double> real_in(const SqlRow& row, std::size_t number) {
  if (const auto* real = column<double>(row, number)) return *real;
  if (const auto* whole = column<std::int64_t>(row, number)) return static_cast<double>(*whole);
  return std::nullopt;
}

// Null: there is none.
const json* member_of(const json* object, const char* name) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto found = object->find(name);
  return found == object->end() ? nullptr : &*found;
}

// The value of ours that a parameter is; nothing: there is none.
std::optional<double> value_in(const Dimension& dimension, double value, const json& distribution) {
  if (dimension.choice) {
    const json* const attributes = member_of(&distribution, "attributes");
    const json* const choices = member_of(attributes, "choices");
    if (choices == nullptr || !choices->is_array()) return std::nullopt;
    if (!(value >= 0.0 && value < static_cast<double>(choices->size()))) return std::nullopt;
    const json& choice = (*choices)[static_cast<std::size_t>(value)];
    return value_of(dimension, choice.is_string() ? choice.get<std::string>() : choice.dump());
  }
  if (dimension.integer) return value_of(dimension, fmt::format("{}", value));
  if (dimension.log && value <= 0.0) return std::nullopt;
  const double share = share_of(dimension, value);
  if (!(share > -1e-9 && share < 1.0 + 1e-9)) return std::nullopt;
  return value_near(dimension, share);
}

class StorageReader {
 public:
  StorageReader(SqliteDatabase& database, const Study& study)
      : database_(database), study_(study) {}

  Result<std::vector<ForeignTrial>> read(const std::string& name) {
    ASSIGN_OR_RETURN(const std::int64_t id, find(name));
    RETURN_IF_ERROR(check_direction(id));
    RETURN_IF_ERROR(check_figure(id));
    ASSIGN_OR_RETURN(const auto rows,
                     database_.run("SELECT t.trial_id, t.number, v.value FROM trials t JOIN "
                                   "trial_values v ON v.trial_id = t.trial_id WHERE t.study_id = ? "
                                   "AND t.state = 'COMPLETE' AND v.objective = 0 ORDER BY t.number",
                                   {id}));
    std::vector<ForeignTrial> trials;
    for (const SqlRow& row : rows) {
      const auto* const trial = column<std::int64_t>(row, 0);
      const auto figure = real_in(row, 2);
      if (trial == nullptr || !figure || !std::isfinite(*figure)) continue;
      ASSIGN_OR_RETURN(Settings settings, settings_of_trial(*trial, real_in(row, 1).value_or(0.0)));
      trials.push_back({std::move(settings), *figure});
    }
    return trials;
  }

 private:
  Result<std::int64_t> find(const std::string& name) {
    ASSIGN_OR_RETURN(const auto rows,
                     database_.run("SELECT study_id, study_name FROM studies ORDER BY study_id"));
    std::vector<std::string> names;
    std::optional<std::int64_t> found;
    for (const SqlRow& row : rows) {
      const auto* const id = column<std::int64_t>(row, 0);
      const auto* const own = column<std::string>(row, 1);
      if (id == nullptr || own == nullptr) continue;
      names.push_back(*own);
      if (*own == name || (name.empty() && rows.size() == 1)) found = *id;
    }
    if (found) return *found;
    return Error{
        ErrorKind::kUsage,
        fmt::format("the storage has {}; name one of them: --from-study NAME",
                    names.empty() ? "no study" : fmt::format("{}", fmt::join(names, ", ")))};
  }

  Result<void> check_direction(std::int64_t id) {
    ASSIGN_OR_RETURN(
        const auto rows,
        database_.run("SELECT direction FROM study_directions WHERE study_id = ?", {id}));
    const std::string wanted = study_.objective.minimise ? "MINIMIZE" : "MAXIMIZE";
    const auto* const own = rows.size() == 1 ? column<std::string>(rows.front(), 0) : nullptr;
    if (own != nullptr && *own == wanted) return {};
    return Error{ErrorKind::kUsage,
                 fmt::format("the study of the storage does not {} one figure, as this one does",
                             study_.objective.minimise ? "minimise" : "maximise")};
  }

  // Studies of Optuna's own do not say which figure it is.
  Result<void> check_figure(std::int64_t id) {
    ASSIGN_OR_RETURN(
        const auto rows,
        database_.run("SELECT value_json FROM study_user_attributes WHERE study_id = ? "
                      "AND key = 'figure'",
                      {id}));
    const auto* const text = rows.empty() ? nullptr : column<std::string>(rows.front(), 0);
    if (text == nullptr) return {};
    const json own = runtime::parse_json(*text);
    if (!own.is_string() || own == study_.objective.figure()) return {};
    return Error{ErrorKind::kUsage,
                 fmt::format("the figure of the storage's study is {}; the one of this study is {}",
                             own.get<std::string>(), study_.objective.figure())};
  }

  Result<Settings> settings_of_trial(std::int64_t id, double number) {
    ASSIGN_OR_RETURN(const auto rows,
                     database_.run("SELECT param_name, param_value, distribution_json FROM "
                                   "trial_params WHERE trial_id = ?",
                                   {id}));
    const auto refuse = [&](const std::string& what) {
      return Error{ErrorKind::kUsage,
                   fmt::format("trial {} of the storage is not of this space: {}", number, what)};
    };
    Settings settings;
    for (const SqlRow& row : rows) {
      const auto* const name = column<std::string>(row, 0);
      const auto* const text = column<std::string>(row, 2);
      const auto value = real_in(row, 1);
      if (name == nullptr || text == nullptr || !value) return refuse("a parameter has no value");
      const auto dimension = std::ranges::find(study_.space, *name, &Dimension::path);
      if (dimension == study_.space.end()) return refuse("there is no field " + *name);
      const auto own = value_in(*dimension, *value, runtime::parse_json(*text));
      if (!own) return refuse(fmt::format("{} has another value", *name));
      settings.emplace_back(*name, text_of(*dimension, *own));
    }
    if (point_of(study_.space, settings)) return settings;
    return refuse("it lacks fields, or has others");
  }

  SqliteDatabase& database_;
  const Study& study_;
};

}  // namespace

Result<std::string> optuna_storage(const LoadedStudy& loaded, const TrialBook& book,
                                   const std::vector<JournalLine>& lines) {
  ASSIGN_OR_RETURN(SqliteDatabase database, SqliteDatabase::create());
  RETURN_IF_ERROR(StorageWriter(database, loaded, book).write(lines));
  return database.bytes();
}

Result<std::vector<ForeignTrial>> read_optuna_storage(std::string bytes, const std::string& name,
                                                      const Study& study) {
  ASSIGN_OR_RETURN(SqliteDatabase database, SqliteDatabase::read(std::move(bytes)));
  return StorageReader(database, study).read(name);
}

}  // namespace troupe::study
