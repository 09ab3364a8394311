#include "telemetry/record.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/json_reader.h"
#include "runtime/base/json_writer.h"

namespace troupe::telemetry {
namespace {

using nlohmann::json;

// The fields of a record after its kind, step and time.
void body_fields(auto& archive, auto& body) {
  using Body = std::remove_cvref_t<decltype(body)>;
  if constexpr (std::is_same_v<Body, ValidationFacts>) {
    archive.json("fields", body.json);
  } else if constexpr (std::is_same_v<Body, ViewFacts> || std::is_same_v<Body, CheckpointFacts>) {
    archive.object("fields", body);
  } else if constexpr (!std::is_same_v<Body, std::monostate>) {
    fields(archive, body);
  }
}

template <class Body>
bool read_body(std::string_view kind, const json& line, Record& record) {
  if constexpr (std::is_same_v<Body, std::monostate>) {
    return false;
  } else {
    if (kind != Body::kKind) return false;
    runtime::JsonReader reader(line);
    body_fields(reader, record.body.emplace<Body>());
    return true;
  }
}

template <std::size_t... kPlaces>
void read_any(std::string_view kind, const json& line, Record& record,
              std::index_sequence<kPlaces...>) {
  (read_body<std::variant_alternative_t<kPlaces, RecordBody>>(kind, line, record) || ...);
}

void add(std::string series, double value, std::vector<RecordPoint>& points) {
  if (std::isfinite(value)) points.push_back({std::move(series), value});
}

// Of a step, or of test events.
void add_losses(const auto& facts, std::vector<RecordPoint>& points) {
  for (const auto& [name, loss] : facts.losses) {
    add(fmt::format("loss/{}/{}", facts.slot, name), loss, points);
  }
}

void add_points(const StepFacts& step, std::vector<RecordPoint>& points) {
  add_losses(step, points);
  add("seconds/load", step.load_seconds, points);
  add("seconds/compute", step.compute_seconds, points);
  add("seconds/reduce", step.reduce_seconds, points);
  add("seconds/apply", step.apply_seconds, points);
}

// Null: there is none, or `value` is no object. Lives as long as `value`.
const json& field(const json& value, const char* name) {
  static const json kNothing;
  const auto found = value.find(name);
  return found == value.end() ? kNothing : *found;
}
const json& field(json&& value, const char* name) = delete;

// The rows of the validation's table; null: there are none.
json table_rows(const ValidationFacts& validation) {
  const json table = runtime::parse_json(validation.json);
  const json& rows = field(table, "rows");
  return rows.is_array() && !rows.empty() ? rows : json();
}

// The last row is of the generator as it is. Null: there is no table.
json newest_row(const ValidationFacts& validation) {
  const json rows = table_rows(validation);
  return rows.is_null() ? rows : rows.back();
}

void add_numbers(const char* prefix, const json& figures, std::vector<RecordPoint>& points) {
  if (!figures.is_object()) return;
  for (const auto& [name, value] : figures.items()) {
    if (value.is_number()) add(prefix + name, value.get<double>(), points);
  }
}

void add_points(const ValidationFacts& validation, std::vector<RecordPoint>& points) {
  const json row = newest_row(validation);
  const json& comparison = field(row, "comparison");
  const json& merit = field(comparison, "merit");
  for (const char* figure : {"total", "moments", "profiles", "sampling_fraction", "angle"}) {
    const json& value = field(merit, figure);
    if (value.is_number()) add(fmt::format("validation/{}", figure), value.get<double>(), points);
  }
  add_numbers("validation/", comparison, points);
  const json& distance = field(field(row, "chosen"), "distance");
  if (distance.is_number()) add("validation/distance", distance.get<double>(), points);
  // The row of the data has what two samples drawn from them have.
  const json rows = table_rows(validation);
  if (!rows.is_null()) add_numbers("validation/floor/", field(rows.front(), "floor"), points);
}

std::string mark_of(const ValidationFacts& validation) {
  const json row = newest_row(validation);
  if (row.is_null()) return "";
  const json& comparison = field(row, "comparison");
  const json& total = field(field(comparison, "merit"), "total");
  std::string mark = total.is_number() ? fmt::format("figure of merit {:.4g}", total.get<double>())
                     : comparison.is_object() && !comparison.contains("merit")
                         ? std::string("validation")
                         : std::string("no figure of merit");
  const json& chosen = field(row, "chosen");
  const json &title = field(chosen, "title"), &value = field(chosen, "value");
  const json& unit = field(chosen, "unit");
  if (title.is_string() && value.is_number() && field(chosen, "figure") != "merit") {
    mark += fmt::format(", {} {:.4g}", title.get<std::string>(), value.get<double>());
    if (unit.is_string() && unit != "") mark += " " + unit.get<std::string>();
  }
  const json& unlike = field(comparison, "unlike");
  if (unlike.is_array() && !unlike.empty()) mark += ", nothing like the data";
  return mark;
}

std::string mark_of(const ViewFacts& view) {
  const std::size_t members = view.members.size();
  std::string mark = fmt::format("{} member{}", members, members == 1 ? "" : "s");
  if (!view.joined.empty()) mark += fmt::format("; {} joined", fmt::join(view.joined, ", "));
  if (!view.causes.empty()) mark += fmt::format("; {}", fmt::join(view.causes, "; "));
  if (!view.shared_anew.empty()) mark += "; " + view.shared_anew;
  return mark;
}

std::string mark_of(const NodeFacts& node) {
  if (node.state == "dead") return fmt::format("{} was lost: {}", node.name, node.cause);
  if (node.state == "ended") return fmt::format("{} left: {}", node.name, node.cause);
  return fmt::format("{} is {}{}{}", node.name, node.state, node.host.empty() ? "" : " on ",
                     node.host);
}

std::string mark_of(const BillFacts& bill) { return bill.decision; }

}  // namespace

std::string_view kind_of(const Record& record) {
  return std::visit(
      [](const auto& body) -> std::string_view {
        if constexpr (requires { body.kKind; }) return body.kKind;
        return "";
      },
      record.body);
}

std::vector<RecordPoint> points_of(const Record& record) {
  std::vector<RecordPoint> points;
  if (const auto* step = std::get_if<StepFacts>(&record.body)) {
    add_points(*step, points);
  } else if (const auto* test = std::get_if<TestLossFacts>(&record.body)) {
    add_losses(*test, points);
  } else if (const auto* validation = std::get_if<ValidationFacts>(&record.body)) {
    add_points(*validation, points);
  } else if (const auto* view = std::get_if<ViewFacts>(&record.body)) {
    add("members", static_cast<double>(view->members.size()), points);
  } else if (const auto* samples = std::get_if<SampleFacts>(&record.body)) {
    for (const auto& [series, figures] : samples->values) add(series, figures.mean, points);
  }
  return points;
}

std::string mark_of(const Record& record) {
  const auto mark = [&](const auto& body) -> std::string {
    using Body = std::remove_cvref_t<decltype(body)>;
    if constexpr (std::is_same_v<Body, RunRecord>) {
      return record.step > 0 ? fmt::format("went on at step {}", record.step) : "";
    } else if constexpr (std::is_same_v<Body, CheckpointFacts>) {
      return "checkpoint " + body.file;
    } else if constexpr (requires { mark_of(body); }) {
      return mark_of(body);
    } else {
      return "";
    }
  };
  return std::visit(mark, record.body);
}

std::string rows_of(const Record& record) {
  const auto* const validation = std::get_if<ValidationFacts>(&record.body);
  if (validation == nullptr) return "";
  const json rows = table_rows(*validation);
  return rows.is_null() ? "" : rows.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string line_of(const Record& record) {
  CHECK(!std::holds_alternative<std::monostate>(record.body), "a record of no kind");
  std::string line = "{";
  runtime::JsonWriter writer(line);
  writer.text("kind", kind_of(record), kAnyLength);
  writer.number("step", record.step);
  writer.moment("time", record.time);
  std::visit([&](const auto& body) { body_fields(writer, body); }, record.body);
  return line + '}';
}

runtime::Result<Record> read_record(std::string_view line) {
  const json value = runtime::parse_json(line);
  std::string kind;
  Record record;
  runtime::JsonReader reader(value);
  reader.text("kind", kind, kAnyLength);
  reader.moment("time", record.time);
  const json& step = field(value, "step");
  if (kind.empty() || !step.is_number_unsigned()) {
    return runtime::Error{runtime::ErrorKind::kData, "not a line of metrics: no kind or no step"};
  }
  record.step = step.get<std::uint64_t>();
  read_any(kind, value, record, std::make_index_sequence<std::variant_size_v<RecordBody>>());
  return record;
}

}  // namespace troupe::telemetry
