#pragma once

// The table of the study language.

#include "config/record.h"
#include "study/study_file.h"

namespace troupe::study {

// The whole file, but for what only the topology can tell (space_check.h).
const config::Record<Study>& study_record();

}  // namespace troupe::study
