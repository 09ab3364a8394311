#include "study/study_report.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "config/codec.h"
#include "launch/processes/shell_word.h"
#include "runtime/base/json_writer.h"
#include "study/importance.h"
#include "study/study_fields.h"

namespace troupe::study {
namespace {

using Row = std::vector<std::string>;

constexpr std::size_t kLongestError = 60;

// The runs of a trial, from the first rung on.
struct ReportedRun {
  std::uint32_t rung = 0;
  const RunResult& result;
};
std::vector<ReportedRun> runs_of(const TrialBook& book, const Trial& trial) {
  std::vector<ReportedRun> runs;
  for (const std::uint32_t number : trial.jobs) {
    const Job& job = book.jobs()[number];
    for (const RunResult& result : job.results) runs.push_back({job.rung, result});
  }
  return runs;
}

double seconds_of(const TrialBook& book, const Trial& trial) {
  double seconds = 0.0;
  for (const ReportedRun& run : runs_of(book, trial)) seconds += run.result.seconds;
  return seconds;
}

std::string figure_text(const std::optional<TrialFigure>& figure) {
  if (!figure) return "-";
  if (!figure->deviation) return fmt::format("{:.6g}", figure->mean);
  return fmt::format("{:.6g} +- {:.2g}", figure->mean, *figure->deviation);
}

Row headings(const Study& study, const TrialBook& book) {
  Row row{"trial", study.objective.figure(), "state", "seconds"};
  if (book.rungs() > 1) row.emplace_back("rung");
  for (const std::string& name : short_names(study.space)) row.push_back(name);
  row.emplace_back("");
  return row;
}

Row row_of(const Study& study, const TrialBook& book, std::uint32_t number) {
  const Trial& trial = book.trials()[number];
  const Job& last = book.last_job(trial);
  Row row{fmt::format("{}", number), figure_text(book.figure(trial)), state_of(book, trial),
          fmt::format("{:.1f}", seconds_of(book, trial))};
  if (book.rungs() > 1) row.push_back(fmt::format("{}", last.rung));
  for (std::size_t i = 0; i < study.space.size(); ++i) {
    const double value = trial.point[i];
    row.push_back(value == kAbsent ? "-" : text_of(study.space[i], value));
  }
  const std::string error = last.has_failed() ? last.results.back().error : "";
  row.push_back(config::shown(error, kLongestError));
  return row;
}

std::string text_of(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string best_text(const Study& study, const TrialBook& book) {
  const auto best = book.best();
  if (!best) return "no trial has a figure yet\n";
  const Trial& trial = book.trials()[*best];
  std::vector<std::string> words{"troupe", "run", study.topology};
  for (const auto& [path, value] : settings_of(study.space, trial.point)) {
    words.insert(words.end(), {"--set", path + "=" + value});
  }
  return fmt::format("the best is trial {}: {} {}\n  {}\n", *best, study.objective.figure(),
                     figure_text(book.figure(trial)), launch::command_line(words));
}

// The fields that matter, most first; "": too little is known.
std::string importance_text(const Study& study, const TrialBook& book) {
  const std::vector<double> shares = importance_of(study.space, book.observations());
  const std::vector<std::string> names = short_names(study.space);
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < shares.size(); ++i) order.emplace_back(-shares[i], i);
  std::ranges::sort(order);
  std::vector<std::string> texts;
  for (const auto& [share, i] : order) {
    if (levels(study.space[i]) != 1) texts.push_back(fmt::format("{} {:.2f}", names[i], -share));
  }
  if (texts.empty()) return "";
  return fmt::format("share of what differs that a field explains by itself: {}\n",
                     fmt::join(texts, ", "));
}

template <class Archive>
void fields(Archive& archive, runtime::Like<ReportedRun> auto& run) {
  archive.number("rung", run.rung);
  archive.perhaps("figure", run.result.figure,
                  [](auto& item, double figure) { item.real("", figure, 17); });
  archive.text("error", run.result.error, SIZE_MAX);
  archive.integer("exit_code", run.result.exit_code);
  archive.text("state_hash", run.result.state_hash, SIZE_MAX);
  archive.real("seconds", run.result.seconds);
}

// A trial as JSON tells it.
struct TrialAnswer {
  std::uint32_t number = 0;
  std::string state;
  std::uint32_t rung = 0;
  std::optional<TrialFigure> figure;
  Settings settings;
  std::vector<ReportedRun> runs;
};

template <class Archive>
void fields(Archive& archive, runtime::Like<TrialAnswer> auto& answer) {
  const auto real = [](auto& item, double value) { item.real("", value, 17); };
  const auto& figure = answer.figure;
  archive.number("trial", answer.number);
  archive.text("state", answer.state, SIZE_MAX);
  archive.number("rung", answer.rung);
  archive.perhaps("figure", figure ? std::optional(figure->mean) : std::nullopt, real);
  archive.perhaps("deviation", figure ? figure->deviation : std::nullopt, real);
  archive.map("settings", answer.settings,
              [](auto& item, auto& value) { item.text("", value, SIZE_MAX); });
  archive.list("runs", answer.runs, SIZE_MAX);
}

struct StudyAnswer {
  const Study& study;
  const TrialBook& book;
  std::vector<std::pair<std::string, double>> importance;
  std::vector<TrialAnswer> trials;
};

// A word of the study's file.
std::string word_of(const Study& study, const char* section, const char* field) {
  const config::YamlValue written = study_record().write(study, config::Selection::kAll);
  return written.find(section)->find(field)->scalar;
}

template <class Archive>
void fields(Archive& archive, runtime::Like<StudyAnswer> auto& answer) {
  const Study& study = answer.study;
  archive.text("name", study.name, SIZE_MAX);
  archive.text("figure", study.objective.figure(), SIZE_MAX);
  archive.text("of", word_of(study, "objective", "of"), SIZE_MAX);
  archive.flag("maximise", study.objective.maximise.has_value());
  archive.text("method", word_of(study, "method", "kind"), SIZE_MAX);
  archive.number("trials_wanted", answer.book.all_trials());
  archive.perhaps("best", answer.book.best());
  archive.map("importance", answer.importance,
              [](auto& item, double share) { item.real("", share, 6); });
  archive.list("trials", answer.trials, SIZE_MAX);
}

}  // namespace

std::string state_of(const TrialBook& book, const Trial& trial) {
  const Job& last = book.last_job(trial);
  if (last.is_running) return "running";
  if (last.has_failed()) return "failed";
  if (!book.has_ended(last)) return "waiting";
  return last.rung + 1 < book.rungs() ? "left" : "done";
}

std::vector<std::uint32_t> by_figure(const Study& study, const TrialBook& book) {
  std::vector<std::pair<std::pair<double, double>, std::uint32_t>> order;
  constexpr double kLast = std::numeric_limits<double>::infinity();
  for (std::uint32_t i = 0; i < book.trials().size(); ++i) {
    const Trial& trial = book.trials()[i];
    const auto figure = book.figure(trial);
    const double rung = figure ? -static_cast<double>(figure->rung) : kLast;
    order.push_back({{rung, figure ? study.objective.cost(figure->mean) : kLast}, i});
  }
  std::ranges::sort(order);
  std::vector<std::uint32_t> numbers;
  for (const auto& [key, number] : order) numbers.push_back(number);
  return numbers;
}

std::string report_text(const Study& study, const TrialBook& book) {
  std::vector<Row> rows{headings(study, book)};
  std::size_t ended = 0;
  for (const std::uint32_t number : by_figure(study, book)) {
    rows.push_back(row_of(study, book, number));
    ended += book.has_ended(book.last_job(book.trials()[number])) ? 1 : 0;
  }
  return fmt::format("{}{} of {} trials have ended; {}{}", text_of(rows), ended, book.all_trials(),
                     best_text(study, book), importance_text(study, book));
}

std::string report_members(const Study& study, const TrialBook& book) {
  StudyAnswer answer{study, book, {}, {}};
  const std::vector<double> shares = importance_of(study.space, book.observations());
  for (std::size_t i = 0; i < shares.size(); ++i) {
    answer.importance.emplace_back(study.space[i].path, shares[i]);
  }
  for (std::uint32_t i = 0; i < book.trials().size(); ++i) {
    const Trial& trial = book.trials()[i];
    answer.trials.push_back({i, state_of(book, trial), book.last_job(trial).rung,
                             book.figure(trial), settings_of(study.space, trial.point),
                             runs_of(book, trial)});
  }
  return runtime::json_members(answer);
}

std::vector<std::string> short_names(const Space& space) {
  std::vector<std::string> names;
  for (const Dimension& dimension : space) {
    const auto is_of_others = [&](const std::string& end) {
      return std::ranges::any_of(space, [&](const Dimension& other) {
        return other.path != dimension.path && ("." + other.path).ends_with("." + end);
      });
    };
    std::size_t at = dimension.path.rfind('.');
    while (at != std::string::npos && at > 0 && is_of_others(dimension.path.substr(at + 1))) {
      at = dimension.path.rfind('.', at - 1);
    }
    names.push_back(at == std::string::npos ? dimension.path : dimension.path.substr(at + 1));
  }
  return names;
}

}  // namespace troupe::study
