#pragma once

// Studies as Optuna keeps them, in a file of SQLite, so that its dashboards show ours, and trials
// of its studies are a beginning for ours. Optuna 3.1 reads and writes schema 12 of such files;
// later releases bring it up to theirs (optuna storage upgrade).

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "study/study_file.h"
#include "study/study_journal.h"
#include "study/trial_book.h"

namespace troupe::study {

// The bytes of a storage with this study alone. A trial is COMPLETE, PRUNED where it was left
// behind, FAIL or RUNNING. The figure of each rung is an intermediate value at the step that the
// rung trains to; state hash, error and spread are attributes of the user. `lines`: those of the
// journal, for the times.
runtime::Result<std::string> optuna_storage(const LoadedStudy& loaded, const TrialBook& book,
                                            const std::vector<JournalLine>& lines);

// A trial that was made elsewhere.
struct ForeignTrial {
  Settings settings;
  double figure = 0.0;
};

// The complete trials of the study called `name` in a storage, in their order; "": the only one
// there is. Values that ours has no digits for become the nearest that it has. kData: this is no
// such storage; kUsage: it has no such study, another direction or several, another figure, or
// trials that are not of the space.
runtime::Result<std::vector<ForeignTrial>> read_optuna_storage(std::string bytes,
                                                               const std::string& name,
                                                               const Study& study);

}  // namespace troupe::study
