#pragma once

// The table of figures of a classifier, for people and for machines: data against generated images.

#include <cstddef>
#include <span>
#include <string>

#include "model/physics/figure.h"

namespace troupe::model {

// Both in the order of class_figure_list().
struct ClassTable {
  std::size_t events = 0;
  std::span<const Figure> data;       // against themselves, with floors
  std::span<const Figure> generated;  // against the data
  std::string chosen;                 // the figure by which the best is chosen
};

// A line of headings, one line per row and what the columns mean, each ending in a newline. The row
// of the data has what samples drawn from them have.
std::string table_text(const ClassTable& table);
// One JSON object of the form of a validation's table (model/physics/table.h): rows "data", with
// `floor`, and "generated", with `comparison` and `chosen`. Both have the figures by their names;
// those without a value are null.
std::string table_json(const ClassTable& table);

}  // namespace troupe::model
