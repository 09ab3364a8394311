#pragma once

// DIR/study.jsonl: what a study does, written before it is done. One JSON object per line, "kind"
// first:
//
//   study    what the study is (study_hash()), and when it began
//   trial    a trial is proposed: its number from 0 and its settings
//   promote  a trial is to go on to its next rung
//   begin    a run of a trial begins; it may have to be begun again after this process has ended
//   end      what became of it
//
// The process that goes on with the study reads it.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "launch/folder/line_file.h"
#include "runtime/base/error.h"
#include "study/space.h"
#include "study/trial_book.h"

namespace troupe::study {

struct StudyLine {
  static constexpr std::string_view kKind = "study";
  std::string hash, version, time;
};

struct TrialLine {
  static constexpr std::string_view kKind = "trial";
  std::uint32_t trial = 0;
  Settings settings;
};

struct PromoteLine {
  static constexpr std::string_view kKind = "promote";
  std::uint32_t trial = 0;
};

struct BeginLine {
  static constexpr std::string_view kKind = "begin";
  RunNumber run;
  std::string time;
};

struct EndLine {
  static constexpr std::string_view kKind = "end";
  RunNumber run;
  RunResult result;
  std::string time;
};

using JournalLine = std::variant<StudyLine, TrialLine, PromoteLine, BeginLine, EndLine>;

std::string journal_text(const JournalLine& line);
// kData: it is none.
runtime::Result<JournalLine> read_journal_line(std::string_view text);

// Tells the book what the line says; nothing of a StudyLine. kData: it cannot be, by the space or
// by the lines before.
runtime::Result<void> tell(const JournalLine& line, const Space& space, TrialBook& book);

// Now, for lines.
std::string time_of_day();

// One thread.
class StudyJournal {
 public:
  static constexpr const char* kName = "study.jsonl";

  // Goes on with what is there. kData: see LineFile; or a line that is none, with its number.
  static runtime::Result<StudyJournal> open(const std::string& path);

  // As they were when the file was opened.
  const std::vector<JournalLine>& lines() const { return lines_; }
  // The line outlives this machine when it returns. kData: it could not be written.
  runtime::Result<void> add(const JournalLine& line);

 private:
  StudyJournal(launch::LineFile file, std::vector<JournalLine> lines)
      : file_(std::move(file)), lines_(std::move(lines)) {}

  launch::LineFile file_;
  std::vector<JournalLine> lines_;
};

// Reads a file that another process may write; kData: there is none, or a line is none. A last line
// that is not whole is left out.
runtime::Result<std::vector<JournalLine>> read_study_journal(const std::string& path);

}  // namespace troupe::study
