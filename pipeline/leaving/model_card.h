#pragma once

// What stands beside a file that leaves: a page that tells what it is and where it came from.

#include <string>
#include <utility>
#include <vector>

#include "pipeline/leaving/trained_model.h"

namespace troupe::pipeline {

struct ModelCard {
  std::string title;
  std::vector<std::string> files;  // a sentence each: name, content, hash
  std::string use;                 // Markdown: inputs, outputs, units
  // Name and value, of the last validation; empty: there was none.
  std::vector<std::pair<std::string, std::string>> figures;
  // Words for what of the generated showers was nothing like the data then.
  std::vector<std::string> unlike = {};
};

// Markdown. The facts of the model make a table.
std::string text_of(const ModelCard& card, const TrainedModel& trained);

}  // namespace troupe::pipeline
