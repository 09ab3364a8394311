#pragma once

// A study as one page of HTML, which needs nothing else: its figures as they came and over each
// field, the course of the best trials, and the table of trials.

#include <cstdint>
#include <string>
#include <vector>

#include "study/study_file.h"
#include "study/trial_book.h"
#include "study/trial_run.h"

namespace troupe::study {

// `curves`: of trials that have a figure, as many as shall be drawn. `renewed_s`: the browser asks
// for it again after so many seconds; 0: it does not.
std::string study_html(const Study& study, const TrialBook& book, const std::vector<Curve>& curves,
                       std::uint32_t renewed_s = 0);

}  // namespace troupe::study
