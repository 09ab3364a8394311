#include "telemetry/record.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "telemetry/json_fields.h"

namespace troupe::telemetry {
namespace {

using nlohmann::json;

std::vector<std::string> texts(const json& value) {
  std::vector<std::string> all;
  for (const json& item : items(value)) all.push_back(text(item));
  return all;
}

// Every number of the object as "PREFIX/name".
void add_points(const std::string& prefix, const json& object, std::vector<RecordPoint>& points) {
  if (!object.is_object()) return;
  for (const auto& [name, value] : object.items()) {
    if (value.is_number()) points.push_back({prefix + "/" + name, value.get<double>()});
  }
}

NodeFacts node_facts(const json& line) {
  NodeFacts node;
  node.name = text(field(line, "node"));
  node.host = text(field(line, "host"));
  node.role = text(field(line, "role"));
  if (node.role.empty()) node.role = "member";
  node.pid = whole(field(line, "pid"));
  node.state = text(field(line, "state"));
  node.cause = text(field(line, "cause"));
  return node;
}

void read_run(const json& line, Record& record) {
  RunFacts facts;
  facts.name = text(field(line, "name"));
  facts.model = text(field(line, "model"));
  facts.version = text(field(line, "version"));
  facts.schedule = texts(field(line, "schedule"));
  for (const json& loss : field(line, "losses")) {
    if (loss.is_array() && loss.size() == 2)
      facts.losses.emplace_back(text(loss[0]), number(loss[1]));
  }
  facts.iterations = whole(field(line, "iterations"));
  facts.iterations_per_epoch = whole(field(line, "iterations_per_epoch"));
  facts.micro_batches = whole(field(line, "micro_batches"));
  facts.micro_batch = whole(field(line, "micro_batch"));
  facts.price_per_node_hour = number(field(line, "price_per_node_hour"));
  record.run = std::move(facts);
  record.node = node_facts(line);
  record.node->state = "running";
  if (record.step > 0) record.mark = fmt::format("went on at step {}", record.step);
}

void read_step(const json& line, Record& record) {
  const json& seconds = field(line, "seconds");
  StepFacts made;
  made.iteration = whole(field(line, "iteration"));
  made.slot = text(field(line, "slot"));
  made.events = whole(field(line, "events"));
  for (const char* part : {"load", "compute", "reduce", "apply"}) {
    made.seconds += number(field(seconds, part));
  }
  add_points("loss/" + made.slot, field(line, "losses"), record.points);
  add_points("seconds", seconds, record.points);
  record.made = std::move(made);
}

// The row of the generator as it is comes last.
void read_validation(const json& fields, Record& record) {
  const json& rows = field(fields, "rows");
  if (!rows.is_array() || rows.empty()) return;
  record.rows = rows.dump(-1, ' ', false, json::error_handler_t::replace);
  const json& comparison = field(rows.back(), "comparison");
  const json& merit = field(comparison, "merit");
  for (const char* figure : {"total", "moments", "profiles", "sampling_fraction", "angle"}) {
    const json& value = field(merit, figure);
    if (value.is_number())
      record.points.push_back({fmt::format("validation/{}", figure), number(value)});
  }
  add_points("validation", comparison, record.points);
  const json& total = field(merit, "total");
  record.mark = total.is_number() ? fmt::format("figure of merit {:.4g}", number(total))
                                  : std::string("no figure of merit");
  if (!texts(field(comparison, "unlike")).empty()) record.mark += ", nothing like the data";
}

void read_view(const json& fields, Record& record) {
  const auto members = texts(field(fields, "members"));
  const auto joined = texts(field(fields, "joined"));
  const auto causes = texts(field(fields, "causes"));
  const std::string shared = text(field(fields, "shared_anew"));
  record.points.push_back({"members", static_cast<double>(members.size())});
  record.mark = fmt::format("{} member{}", members.size(), members.size() == 1 ? "" : "s");
  if (!joined.empty()) record.mark += fmt::format("; {} joined", fmt::join(joined, ", "));
  if (!causes.empty()) record.mark += fmt::format("; {}", fmt::join(causes, "; "));
  if (!shared.empty()) record.mark += "; " + shared;
}

void read_node(const json& line, Record& record) {
  record.node = node_facts(line);
  const NodeFacts& node = *record.node;
  if (node.state == "dead") {
    record.mark = fmt::format("{} was lost: {}", node.name, node.cause);
  } else if (node.state == "ended") {
    record.mark = fmt::format("{} left: {}", node.name, node.cause);
  } else {
    record.mark = fmt::format("{} is {}{}{}", node.name, node.state,
                              node.host.empty() ? "" : " on ", node.host);
  }
}

void read_samples(const json& line, Record& record) {
  const json& values = field(line, "values");
  if (!values.is_object()) return;
  for (const auto& [series, figures] : values.items()) {
    if (figures.is_array() && figures.size() == 5 && figures[1].is_number())
      record.points.push_back({series, figures[1].get<double>()});
  }
}

}  // namespace

runtime::Result<Record> read_record(std::string_view line) {
  const json value = json::parse(line, nullptr, false);
  Record record;
  record.kind = text(field(value, "kind"));
  if (record.kind.empty() || !field(value, "step").is_number_unsigned()) {
    return runtime::Error{runtime::ErrorKind::kData, "not a line of metrics: no kind or no step"};
  }
  record.time = number(field(value, "time"));
  record.step = whole(field(value, "step"));
  record.json = line;
  const json& fields = field(value, "fields");
  if (record.kind == "run") read_run(value, record);
  if (record.kind == "step") read_step(value, record);
  if (record.kind == "validation") read_validation(fields, record);
  if (record.kind == "view") read_view(fields, record);
  if (record.kind == "node") read_node(value, record);
  if (record.kind == "samples") read_samples(value, record);
  if (record.kind == "checkpoint") {
    record.mark = fmt::format("checkpoint {}", text(field(fields, "file")));
  }
  return record;
}

}  // namespace troupe::telemetry
