#include "study/study_journal.h"

#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "launch/folder/line_text.h"
#include "runtime/base/clock.h"
#include "runtime/base/disk.h"
#include "runtime/base/json_reader.h"
#include "runtime/base/utc_time.h"

namespace troupe::study {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

constexpr std::size_t kLongestText = 4096;
constexpr std::size_t kMostJournalBytes = std::size_t{256} << 20;

}  // namespace

template <class Archive>
void fields(Archive& archive, runtime::Like<StudyLine> auto& line) {
  archive.text("hash", line.hash, kLongestText);
  archive.text("version", line.version, kLongestText);
  archive.text("time", line.time, kLongestText);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<TrialLine> auto& line) {
  archive.number("trial", line.trial, kMostTrials);
  archive.map("settings", line.settings,
              [](auto& item, auto& value) { item.text("", value, kLongestValue); });
}

template <class Archive>
void fields(Archive& archive, runtime::Like<PromoteLine> auto& line) {
  archive.number("trial", line.trial, kMostTrials);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<RunNumber> auto& run) {
  archive.number("trial", run.trial, kMostTrials);
  archive.number("rung", run.rung, kMostTrials);
  archive.number("repeat", run.repeat, kMostTrials);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<BeginLine> auto& line) {
  archive.inlined(line.run);
  archive.text("time", line.time, kLongestText);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<EndLine> auto& line) {
  archive.inlined(line.run);
  // So many digits give the same number again.
  archive.perhaps("figure", line.result.figure,
                  [](auto& item, auto& figure) { item.real("", figure, 17); });
  archive.text("error", line.result.error, kLongestText);
  archive.text("state_hash", line.result.state_hash, kLongestText);
  archive.integer("exit_code", line.result.exit_code);
  archive.real("seconds", line.result.seconds, 17);
  archive.text("time", line.time, kLongestText);
}

// A run without a figure has failed; one with a figure has a number.
static const char* fault_of(const EndLine& line) {
  const bool is_sound = !line.result.figure || std::isfinite(*line.result.figure);
  return is_sound ? nullptr : "a figure that is no number";
}

namespace {

template <class Line>
bool read_one(const nlohmann::json& text, std::optional<JournalLine>& line) {
  Line made;
  if (!launch::read_line(text, made)) return false;
  line = std::move(made);
  return true;
}

Result<JournalLine> numbered(const std::string& path, std::size_t number, std::string_view text) {
  auto line = read_journal_line(text);
  if (line.ok()) return line;
  return Error{ErrorKind::kData, fmt::format("{}:{}: {}", path, number, line.error().message)};
}

}  // namespace

std::string journal_text(const JournalLine& line) {
  return std::visit([](const auto& made) { return launch::text_of(made); }, line);
}

Result<JournalLine> read_journal_line(std::string_view text) {
  const nlohmann::json parsed = runtime::parse_json(text);
  std::optional<JournalLine> line;
  const bool is_read = read_one<StudyLine>(parsed, line) || read_one<TrialLine>(parsed, line) ||
                       read_one<PromoteLine>(parsed, line) || read_one<BeginLine>(parsed, line) ||
                       read_one<EndLine>(parsed, line);
  if (!is_read) return Error{ErrorKind::kData, "this is no line of a study's journal"};
  return *std::move(line);
}

Result<void> tell(const JournalLine& line, const Space& space, TrialBook& book) {
  if (const auto* trial = std::get_if<TrialLine>(&line)) {
    if (trial->trial != book.trials().size()) {
      return Error{ErrorKind::kData, fmt::format("trial {} is out of its turn", trial->trial)};
    }
    const auto point = point_of(space, trial->settings);
    if (!point) {
      return Error{
          ErrorKind::kData,
          fmt::format("the settings of trial {} are not of the study's space", trial->trial)};
    }
    return book.propose(*point);
  }
  if (const auto* promotion = std::get_if<PromoteLine>(&line)) {
    return book.promote(promotion->trial);
  }
  if (const auto* begin = std::get_if<BeginLine>(&line)) return book.begin(begin->run);
  if (const auto* end = std::get_if<EndLine>(&line)) return book.end(end->run, end->result);
  return {};
}

std::string time_of_day() {
  return runtime::utc_text(std::chrono::floor<std::chrono::milliseconds>(runtime::wall_now()));
}

Result<StudyJournal> StudyJournal::open(const std::string& path) {
  std::vector<JournalLine> lines;
  Result<void> fault;
  std::size_t number = 0;
  const auto take = [&](std::string_view text) {
    auto line = numbered(path, ++number, text);
    if (line.ok()) lines.push_back(*std::move(line));
    if (!line.ok() && fault.ok()) fault = line.error();
  };
  ASSIGN_OR_RETURN(launch::LineFile file, launch::LineFile::open(path, true, take));
  RETURN_IF_ERROR(fault);
  return StudyJournal(std::move(file), std::move(lines));
}

Result<void> StudyJournal::add(const JournalLine& line) {
  return file_.add_for_good(journal_text(line));
}

Result<std::vector<JournalLine>> read_study_journal(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, runtime::read_file(path, kMostJournalBytes));
  std::vector<JournalLine> lines;
  std::size_t from = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', from)) {
    ASSIGN_OR_RETURN(JournalLine line, numbered(path, lines.size() + 1,
                                                std::string_view(text).substr(from, end - from)));
    lines.push_back(std::move(line));
    from = end + 1;
  }
  return lines;
}

}  // namespace troupe::study
