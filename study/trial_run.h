#pragma once

// A run of a trial: an ordinary `troupe run` in a folder of its own, and what it has found.

#include <optional>
#include <string>
#include <vector>

#include "launch/processes/child_process.h"
#include "runtime/base/error.h"
#include "study/study_file.h"
#include "study/trial_book.h"

namespace troupe::study {

// The --set of a run: the trial's settings, the seed of the repeat where there are several, and how
// far its rung trains.
std::vector<std::string> overrides_of(const LoadedStudy& loaded, const Point& point, RunNumber run);

// The words behind `troupe` that make the run in this folder, or go on with one that is there.
std::vector<std::string> run_words(const LoadedStudy& loaded, const Point& point, RunNumber run,
                                   const std::string& folder);

// How the process of a run has ended.
struct RunEnd {
  launch::ChildEnd end;
  std::string summary;     // the object that --json promises; may be anything
  std::string last_error;  // the last line of its standard error
  double seconds = 0.0;
};

// The result of such a run. A run that was stopped, or has no such figure, has failed, and its
// error says so.
RunResult result_of(const Objective& objective, const std::string& folder, const RunEnd& end);

// The figure of the run in a folder. kData: it has none, and which there are.
runtime::Result<double> read_figure(const Objective& objective, const std::string& folder,
                                    const std::string& summary);

}  // namespace troupe::study
