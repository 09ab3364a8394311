#pragma once

// A study that a verb works with, and how far it is.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "study/method.h"
#include "study/study_file.h"
#include "study/study_folder.h"
#include "study/study_journal.h"
#include "study/trial_book.h"

namespace troupe {

// Its parts refer to each other, so it stays where it is.
struct OpenStudy {
  explicit OpenStudy(study::LoadedStudy all)
      : loaded(std::move(all)),
        method(make_method(loaded.study)),
        book(loaded.study, *method, loaded.rungs.size()) {}

  const study::LoadedStudy loaded;
  const std::unique_ptr<study::Method> method;
  study::TrialBook book;
};

// Brings the book to where the journal's lines end. kData: as tell().
runtime::Result<void> replay(const std::vector<study::JournalLine>& lines, OpenStudy& open);

// A study as far as its folder tells now.
struct SeenStudy {
  study::StudyFolder folder;
  std::vector<study::JournalLine> lines;
  std::unique_ptr<OpenStudy> open;
  std::uintmax_t journal_bytes = 0;  // before it was read, so that none behind them is missed
};

// The size of a file; that of none is no size that one has.
std::uintmax_t bytes_of(const std::string& path);
// It may go on meanwhile: nothing is locked or changed. Errors as load_study() and
// read_study_journal(); kUsage: the folder holds no study.
runtime::Result<SeenStudy> look_at_study(const std::string& path);

}  // namespace troupe
