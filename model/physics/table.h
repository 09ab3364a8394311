#pragma once

// The table data against generated, for people and for machines.

#include <optional>
#include <span>
#include <string>

#include "model/physics/comparison.h"
#include "model/physics/figure.h"

namespace troupe::model {

// One sample: its own figures and, unless it is the data, its comparison with them.
struct TableRow {
  std::string name;  // "data", "generated", "untrained"
  std::int64_t events = 0;
  std::int64_t empty_events = 0;
  std::int64_t invalid_events = 0;
  Spread sampling_fraction;
  Spread hits;
  std::optional<Comparison> comparison;
  // Of the data: how far they are from themselves (compare_with_itself()).
  std::optional<Comparison> floor;
  // The figure by which the best is chosen, for a generator that is one of several.
  std::optional<Figure> chosen = {};
};

TableRow data_row(std::string name, const ShowerStatistics& data,
                  std::optional<Comparison> floor = std::nullopt);
TableRow generated_row(std::string name, const ShowerStatistics& data,
                       const ShowerStatistics& generated);

// A line of headings, one line per row and what the columns mean, each ending in a newline and
// mostly below 100 characters:
//            events  response  error   width   error  along z  across   hits  error  layers  merit
// data          500    2.040%   0.2%  0.126%    3.1%     1.4%    1.2%  412.3   0.8%   0.031  0.051
// generated     500    1.932%   5.3%  0.600%  376.2%     8.1%   12.3%  398.0   3.5%   0.420  0.412
// The row of the data has their floor, or "-".
// Samples that are nothing like the data (Unlikeness) have a "!" behind the merit, and below the
// rows in what; so do empty and invalid showers where there are any.
std::string table_text(std::span<const TableRow> rows);

// One JSON object without newline: name, events, empty_events, invalid_events, sampling_fraction
// and hits ({"mean", "deviation"}), comparison and floor (null, or the members of Comparison by
// their names, merit likewise, unlike as a list of "response", "longitudinal", "transverse",
// "energy"), chosen (null, or figure, title, unit, value, and distance from the ideal). Fractions
// are not percentages. Numbers with 6 significant digits; absent ones are null.
std::string row_json(const TableRow& row);
// The member `chosen` of a row.
std::string chosen_json(const std::optional<Figure>& chosen);
// {"rows": [row_json, ...]}
std::string table_json(std::span<const TableRow> rows);

}  // namespace troupe::model
