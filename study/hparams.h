#pragma once

// A study for the table of hyperparameters in TensorBoard: an event file for the study, and one for
// each trial in a folder of its number.

#include <string>
#include <vector>

#include "study/study_file.h"
#include "study/study_journal.h"
#include "study/trial_book.h"

namespace troupe::study {

struct EventFile {
  std::string folder;  // below that of the study's; "": that one
  std::string name;
  std::string bytes;
};

// Values of choices are texts, all others numbers. The figure is a scalar with its own name, at the
// number of the trial's rung. `lines`: those of the journal, for the times. Field numbers are those
// of plugin_data.proto and api.proto of TensorBoard's plugin.
std::vector<EventFile> hparams_files(const Study& study, const TrialBook& book,
                                     const std::vector<JournalLine>& lines);

}  // namespace troupe::study
