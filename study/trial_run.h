#pragma once

// A run of a trial: an ordinary `troupe run` in a folder of its own, and what it has found.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "launch/processes/child_process.h"
#include "runtime/base/error.h"
#include "study/study_file.h"
#include "study/trial_book.h"

namespace troupe::study {

// The --set of a run: the trial's settings, the seed or the fold of the repeat where there are
// several, and how far its rung trains.
std::vector<std::string> overrides_of(const LoadedStudy& loaded, const Point& point, RunNumber run);

// The words behind `troupe` that make the run in this folder, or go on with one that is there.
// `listen`: where members join it, besides one of its own, those of its pools included, of which it
// has none at first; "": workers and nodes are the topology's.
std::vector<std::string> run_words(const LoadedStudy& loaded, const Point& point, RunNumber run,
                                   const std::string& folder, const std::string& listen);

// The most bytes of a summary.
inline constexpr std::size_t kMostSummary = std::size_t{1} << 20;

// How the process of a run has ended.
struct RunEnd {
  launch::ChildEnd end;
  std::string summary;     // the object that --json promises; may be anything
  std::string last_error;  // the last line of its standard error
  double seconds = 0.0;
};

// What such a run has come to.
struct RunFound {
  // A run that was stopped, or has no figure, has failed, and its error says so.
  RunResult result;
  enum class Fault : std::uint8_t {
    kNone,
    kMachine,    // its folder, a disk or the machine were at fault
    kEndsEarly,  // it is whole, and its topology ends it before its rung does
    kNoFigure,   // it is whole, and tells of no figure of that name
  };
  Fault fault = Fault::kNone;  // that is none of the trial's settings
};
RunFound found_by(const LoadedStudy& loaded, RunNumber run, const std::string& folder,
                  const RunEnd& end);

// The summary that a run which has come to its end, as far as its rung goes, has left in its
// folder; "": it has not.
std::string whole_summary(const LoadedStudy& loaded, RunNumber run, const std::string& folder);

// The figure of the run in a folder. kTopology: it tells of none of that name, and of which it
// does. kData: it is no number.
runtime::Result<double> read_figure(const Objective& objective, const std::string& folder,
                                    const std::string& summary);

// The course of the objective over a run.
struct Curve {
  std::uint32_t trial = 0;
  std::vector<std::pair<double, double>> points;  // the step and the figure, in order of steps
};

// The figures of the run in a folder so far, with no more points than a picture shows; no points of
// an objective of a summary.
Curve read_curve(const Objective& objective, std::uint32_t trial, const std::string& folder);

}  // namespace troupe::study
