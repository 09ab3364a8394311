#pragma once

// A study as one page of HTML, which needs nothing else: its figures as they came,
// over each field, and the table of trials.

#include <string>

#include "study/study_file.h"
#include "study/trial_book.h"

namespace troupe::study {

std::string study_html(const Study& study, const TrialBook& book);

}  // namespace troupe::study
