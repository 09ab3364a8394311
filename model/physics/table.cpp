#include "model/physics/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace troupe::model {
namespace {

constexpr std::size_t kColumns = 9;
using Line = std::array<std::string, kColumns>;

// One digit after the point while that says something, then three significant ones.
std::string percent(double fraction) {
  const double value = 100.0 * fraction;
  return std::abs(value) < 1000.0 ? fmt::format("{:.1f} %", value) : fmt::format("{:.2e} %", value);
}

std::string spread_percent(const Spread& spread) {
  const double largest = 100.0 * std::max(std::abs(spread.mean), spread.deviation);
  if (largest >= 1000.0) {
    return fmt::format("{:.2e} +- {:.1e} %", 100.0 * spread.mean, 100.0 * spread.deviation);
  }
  return fmt::format("{:.2f} +- {:.2f} %", 100.0 * spread.mean, 100.0 * spread.deviation);
}

Line headings() {
  return {"",      "events", "sampling fraction", "error", "longitudinal", "transverse", "hits",
          "error", "merit"};
}

Line line_of(const TableRow& row) {
  Line line;
  line.fill(std::string(1, '-'));
  line[0] = row.name;
  line[1] = fmt::format("{}", row.events);
  line[2] = spread_percent(row.sampling_fraction);
  line[6] = fmt::format("{:.1f}", row.hits.mean);
  if (!row.comparison.has_value()) return line;
  const Comparison& c = *row.comparison;
  line[3] = percent(c.sampling_fraction_error);
  line[4] = percent(c.longitudinal_error);
  line[5] = percent(c.transverse_error);
  line[7] = percent(c.hits_error);
  if (c.merit.has_value()) line[8] = fmt::format("{:.3g}", c.merit->total);
  return line;
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : "null";
}

std::string number(const std::optional<double>& value) {
  return value.has_value() ? number(*value) : "null";
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
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
  return object({{"merit", merit_json(c.merit)},
                 {"sampling_fraction_error", number(c.sampling_fraction_error)},
                 {"hits_error", number(c.hits_error)},
                 {"moments_error", number(c.moments_error)},
                 {"longitudinal_error", number(c.longitudinal_error)},
                 {"transverse_error", number(c.transverse_error)},
                 {"longitudinal_cell_error", number(c.longitudinal_cell_error)},
                 {"transverse_cell_error", number(c.transverse_cell_error)},
                 {"correlation_difference", number(c.correlation_difference)},
                 {"ecal_separation", number(c.ecal_separation)}});
}

}  // namespace

TableRow data_row(std::string name, const ShowerStatistics& data) {
  const ShowerGroup& all = data.all();
  TableRow row;
  row.name = std::move(name);
  row.events = all.events();
  row.empty_events = all.empty_events();
  row.invalid_events = all.invalid_events();
  row.sampling_fraction = all.sampling_fraction();
  row.hits = all.hits();
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
  return text +
         "Errors are against the data; longitudinal, transverse: energy missing, extra or "
         "misplaced;\n"
         "merit: errors of moments + profiles + sampling fraction (+ angle), lower is better.\n";
}

std::string row_json(const TableRow& row) {
  return object({{"name", quoted(row.name)},
                 {"events", fmt::format("{}", row.events)},
                 {"empty_events", fmt::format("{}", row.empty_events)},
                 {"invalid_events", fmt::format("{}", row.invalid_events)},
                 {"sampling_fraction", spread_json(row.sampling_fraction)},
                 {"hits", spread_json(row.hits)},
                 {"comparison", comparison_json(row.comparison)}});
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
