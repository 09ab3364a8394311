#include "model/physics/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"

namespace troupe::model {
namespace {

constexpr std::size_t kColumns = 12;
using Line = std::array<std::string, kColumns>;

// `digits` after the point below 1000 %, else three significant ones.
std::string percent(double fraction, int digits = 1) {
  const double value = 100.0 * fraction;
  return std::abs(value) < 1000.0 ? fmt::format("{:.{}f}%", value, digits)
                                  : fmt::format("{:.2e}%", value);
}

Line headings() {
  return {"",        "events", "response", "error", "width",  "error",
          "along z", "across", "hits",     "error", "layers", "merit"};
}

Line line_of(const TableRow& row) {
  Line line;
  line.fill(std::string(1, '-'));
  line[0] = row.name;
  line[1] = fmt::format("{}", row.events);
  line[2] = percent(row.sampling_fraction.mean, 3);
  line[4] = percent(row.sampling_fraction.deviation, 3);
  line[8] = fmt::format("{:.1f}", row.hits.mean);
  if (!row.comparison && !row.floor) return line;
  const Comparison& c = row.comparison ? *row.comparison : *row.floor;
  line[3] = percent(c.sampling_fraction_error);
  line[5] = percent(c.sampling_fraction_width_error);
  line[6] = percent(c.longitudinal_error);
  line[7] = percent(c.transverse_error);
  // A threshold that no cell reaches says nothing.
  if (row.hits.mean > 0.0 || c.hits_error > 0.0) line[9] = percent(c.hits_error);
  if (c.layer_correlation_difference) {
    line[10] = fmt::format("{:.3f}", *c.layer_correlation_difference);
  }
  if (c.merit.has_value()) {
    line[11] = fmt::format("{:.3g}{}", c.merit->total, c.unlike.empty() ? "" : " !");
  }
  return line;
}

const char* word_of(Unlikeness what) {
  switch (what) {
    case Unlikeness::kResponse:
      return "response";
    case Unlikeness::kLongitudinal:
      return "longitudinal";
    case Unlikeness::kTransverse:
      return "transverse";
    case Unlikeness::kEnergy:
      return "energy";
  }
  CHECK(false, "no such unlikeness");
}

std::string told(Unlikeness what, const Comparison& c) {
  switch (what) {
    case Unlikeness::kResponse:
      return fmt::format("the response is off by {}", percent(c.sampling_fraction_error));
    case Unlikeness::kLongitudinal:
      return fmt::format("{} of the energy lies elsewhere along z",
                         percent(c.longitudinal_displacement));
    case Unlikeness::kTransverse:
      return fmt::format("{} of the energy lies elsewhere across the shower axis",
                         percent(c.transverse_displacement));
    case Unlikeness::kEnergy:
      return "the energy does not follow the primary's";
  }
  CHECK(false, "no such unlikeness");
}

// "" for a sample that resembles the data.
std::string warning(const TableRow& row) {
  if (!row.comparison || row.comparison->unlike.empty()) return {};
  std::string text = fmt::format("! {}: nothing like the data{}:\n", row.name,
                                 row.comparison->merit ? ", so that its merit means nothing" : "");
  for (const Unlikeness what : row.comparison->unlike) {
    text += fmt::format("  {}\n", told(what, *row.comparison));
  }
  return text;
}

std::string number(const std::optional<double>& value) {
  return value ? runtime::json_number(*value, 6) : "null";
}

using Member = std::pair<const char*, std::string>;

std::string object(const std::vector<Member>& members) {
  std::string text = "{";
  for (const auto& [name, value] : members) {
    text += fmt::format("{}\"{}\": {}", text.size() == 1 ? "" : ", ", name, value);
  }
  return text + "}";
}

std::string spread_json(const Spread& spread) {
  return object({{"mean", number(spread.mean)}, {"deviation", number(spread.deviation)}});
}

std::string merit_json(const std::optional<FigureOfMerit>& merit) {
  if (!merit.has_value()) return "null";
  return object({{"total", number(merit->total)},
                 {"moments", number(merit->moments)},
                 {"profiles", number(merit->profiles)},
                 {"sampling_fraction", number(merit->sampling_fraction)},
                 {"angle", number(merit->angle)},
                 {"energy_bins", fmt::format("{}", merit->energy_bins)},
                 {"energy_bins_skipped", fmt::format("{}", merit->energy_bins_skipped)},
                 {"profile_cells_skipped", fmt::format("{}", merit->profile_cells_skipped)}});
}

std::string comparison_json(const std::optional<Comparison>& comparison) {
  if (!comparison.has_value()) return "null";
  const Comparison& c = *comparison;
  std::string unlike;
  for (const Unlikeness what : c.unlike) {
    unlike += fmt::format("{}\"{}\"", unlike.empty() ? "" : ", ", word_of(what));
  }
  std::vector<Member> members{{"merit", merit_json(c.merit)}, {"unlike", "[" + unlike + "]"}};
  for (const ComparisonNumber& each : comparison_numbers()) {
    members.emplace_back(each.name, number(c.*each.value));
  }
  for (const OptionalNumber& each : optional_numbers()) {
    members.emplace_back(each.name, number(c.*each.value));
  }
  return object(members);
}

}  // namespace

std::string chosen_json(const std::optional<Figure>& chosen) {
  if (!chosen) return "null";
  const auto distance = chosen->value ? std::optional(chosen->distance()) : std::nullopt;
  return object({{"figure", runtime::json_string(chosen->name)},
                 {"title", runtime::json_string(chosen->title)},
                 {"unit", runtime::json_string(chosen->unit)},
                 {"value", number(chosen->value)},
                 {"distance", number(distance)}});
}

TableRow data_row(std::string name, const ShowerStatistics& data, std::optional<Comparison> floor) {
  const ShowerGroup& all = data.all();
  TableRow row;
  row.name = std::move(name);
  row.events = all.events();
  row.empty_events = all.empty_events();
  row.invalid_events = all.invalid_events();
  row.sampling_fraction = all.sampling_fraction();
  row.hits = all.hits();
  row.floor = std::move(floor);
  return row;
}

TableRow generated_row(std::string name, const ShowerStatistics& data,
                       const ShowerStatistics& generated) {
  TableRow row = data_row(std::move(name), generated);
  row.comparison = compare(data, generated);
  return row;
}

std::string table_text(std::span<const TableRow> rows) {
  std::vector<Line> lines{headings()};
  for (const TableRow& row : rows) lines.push_back(line_of(row));
  std::array<std::size_t, kColumns> widths{};
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const Line& line : lines) {
    text += fmt::format("{:<{}}", line[0], widths[0]);
    for (std::size_t i = 1; i < kColumns; ++i) text += fmt::format("  {:>{}}", line[i], widths[i]);
    text += '\n';
  }
  for (const TableRow& row : rows) {
    if (row.empty_events == 0 && row.invalid_events == 0) continue;
    text += fmt::format("{}: {} showers without energy, {} not finite, negative or too large\n",
                        row.name, row.empty_events, row.invalid_events);
  }
  for (const TableRow& row : rows) text += warning(row);
  return text +
         "Errors are against the data; those of the data are what two samples drawn from them "
         "have.\nresponse: energy in the cells / energy of the primary; width: its standard "
         "deviation;\nalong z, across: energy missing, extra or misplaced; layers: correlations of "
         "their energies;\nmerit: errors of moments + profiles + response (+ angle), lower is "
         "better.\n";
}

std::string row_json(const TableRow& row) {
  return object({{"name", runtime::json_string(row.name)},
                 {"events", fmt::format("{}", row.events)},
                 {"empty_events", fmt::format("{}", row.empty_events)},
                 {"invalid_events", fmt::format("{}", row.invalid_events)},
                 {"sampling_fraction", spread_json(row.sampling_fraction)},
                 {"hits", spread_json(row.hits)},
                 {"comparison", comparison_json(row.comparison)},
                 {"floor", comparison_json(row.floor)},
                 {"chosen", chosen_json(row.chosen)}});
}

std::string table_json(std::span<const TableRow> rows) {
  std::string text = "{\"rows\": [";
  for (const TableRow& row : rows) {
    if (text.back() == '}') text += ", ";
    text += row_json(row);
  }
  return text + "]}";
}

}  // namespace troupe::model
