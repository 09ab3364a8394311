#pragma once

// A study as one page of HTML, which needs nothing else: its figures as they came and over each
// field, the course of the best trials, and the table of trials.

#include <string>
#include <vector>

#include "study/study_file.h"
#include "study/trial_book.h"
#include "study/trial_run.h"

namespace troupe::study {

// `curves`: of trials that have a figure, as many as shall be drawn.
std::string study_html(const Study& study, const TrialBook& book, const std::vector<Curve>& curves);

}  // namespace troupe::study
