#pragma once

// Carries a study out: starts the runs of its trials as processes, as many at a time as it says,
// shares its workers out among them, and writes to the journal what the book of trials is told.

#include <functional>
#include <optional>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "study/study_file.h"
#include "study/study_folder.h"
#include "study/study_journal.h"
#include "study/trial_book.h"

namespace troupe::study {

struct RunnerRequest {
  const LoadedStudy& loaded;
  const StudyFolder& folder;
  std::string program;                  // the path of troupe
  std::vector<std::string> more_words;  // behind those of each run
};

// How it has ended, other than by an error: all trials have ended, or a signal came.
struct RunnerEnd {
  int signal = 0;  // the first that asked to end; 0: none
};

// Whether heads can listen where the topology says, as far as the study needs that. Errors as of
// run_address().
runtime::Result<void> check_address(const LoadedStudy& loaded);

// Goes on from where the book is, which is told everything that happens. Runs that were begun and
// have not ended are gone on with; what they have come to since counts.
//
// A signal to end reaches the runs, which save what they have; a second one ends them at once.
// Takes SIGINT, SIGTERM and SIGHUP of this process (launch/processes/signal_watch.h). kData: the
// journal cannot be written. kInternal: a process cannot be started. kUsage: a process from before
// still works in a run's folder. kTopology: the topology has changed, a run tells of no such figure
// before any has had it, or its topology ends it before its rung. Any of the first three also where
// a run ends so by a fault of the machine. The runs are stopped as by a signal then.
runtime::Result<RunnerEnd> run_study(const RunnerRequest& request, StudyJournal& journal,
                                     TrialBook& book, const runtime::Log& log);

}  // namespace troupe::study
