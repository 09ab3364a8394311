#pragma once

// A study's trials as far as they are known: for people as a table, for machines as JSON.

#include <cstdint>
#include <string>
#include <vector>

#include "study/study_file.h"
#include "study/trial_book.h"

namespace troupe::study {

// "running", "waiting" (for its next run), "done", "failed", or "left": it was not among the best
// of its rung, at least so far.
std::string state_of(const TrialBook& book, const Trial& trial);

// Numbers of trials, the best of the highest rung first; those without a figure behind all, as they
// were proposed.
std::vector<std::uint32_t> by_figure(const Study& study, const TrialBook& book);

// A line of headings and one of each trial, the best first and failed ones last; then which is the
// best, and how much each field matters (importance.h). Fields are called by as much of the end of
// their paths as tells them apart.
std::string report_text(const Study& study, const TrialBook& book);

// Members of one object, without braces: name, figure, of, maximise, method, trials_wanted, best
// (the number of a trial, or null), importance (by path; absent with few trials), trials (of each
// trial, state, figure, deviation, settings, runs: figure, error, exit_code, state_hash, seconds).
std::string report_members(const Study& study, const TrialBook& book);

// As many parts of the end of each path as tell it from the others.
std::vector<std::string> short_names(const Space& space);

}  // namespace troupe::study
