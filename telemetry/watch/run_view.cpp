#include "telemetry/watch/run_view.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "telemetry/json_fields.h"

namespace troupe::telemetry {
namespace {

using nlohmann::json;

RunFacts read_facts(const json& run) {
  RunFacts facts;
  facts.name = text(field(run, "name"));
  facts.model = text(field(run, "model"));
  facts.version = text(field(run, "version"));
  for (const json& slot : items(field(run, "schedule"))) facts.schedule.push_back(text(slot));
  for (const json& loss : items(field(run, "losses"))) {
    if (items(loss).size() == 2) facts.losses.emplace_back(text(loss[0]), number(loss[1]));
  }
  facts.iterations = whole(field(run, "iterations"));
  facts.iterations_per_epoch = whole(field(run, "iterations_per_epoch"));
  return facts;
}

RunProgress read_progress(const json& told) {
  RunProgress progress;
  progress.state = text(field(told, "state"));
  progress.error = text(field(told, "error"));
  progress.steps = whole(field(told, "steps"));
  progress.iterations = whole(field(told, "iterations"));
  progress.epochs = whole(field(told, "epochs"));
  progress.events = whole(field(told, "events"));
  progress.events_per_second = number(field(told, "events_per_second"));
  const json& left = field(told, "seconds_left");
  if (left.is_number()) progress.seconds_left = left.get<double>();
  progress.dropped = whole(field(told, "dropped"));
  progress.began = number(field(told, "began"));
  progress.newest = number(field(told, "newest"));
  progress.node_hours = number(field(told, "node_hours"));
  progress.core_hours = number(field(told, "core_hours"));
  progress.cost = number(field(told, "cost"));
  return progress;
}

RunView::Node read_node(const json& told) {
  return {text(field(told, "name")),    text(field(told, "host")),
          text(field(told, "state")),   text(field(told, "cause")),
          number(field(told, "cores")), number(field(told, "resident_bytes"))};
}

// Points from "from" on are replaced.
void take_series(std::vector<double>& curve, const json& told) {
  const std::uint64_t from = whole(field(told, "from"));
  if (from > curve.size()) return;
  curve.resize(from);
  for (const json& mean : items(field(told, "mean"))) {
    if (curve.size() < RunView::kMostPoints) curve.push_back(number(mean));
  }
}

template <class T>
void keep_newest(std::deque<T>& list, T item) {
  list.push_back(std::move(item));
  if (list.size() > RunView::kNotes) list.pop_front();
}

}  // namespace

bool RunView::is_over() const {
  return progress.state == "ended" || progress.state == "failed" || progress.state == "stopped";
}

bool RunView::take(std::string_view text_of_all) {
  const json news = json::parse(text_of_all, nullptr, false);
  if (!news.is_object() || !field(news, "version").is_number_unsigned()) return false;
  if (field(news, "whole") == true) *this = RunView{};
  version = whole(field(news, "version"));
  if (const json& run = field(news, "run"); run.is_object()) facts = read_facts(run);
  if (const json& told = field(news, "progress"); told.is_object()) {
    progress = read_progress(told);
    json others = told;
    others.erase("error");
    const std::string object = others.dump(-1, ' ', false, json::error_handler_t::replace);
    progress_members = object.substr(1, object.size() - 2);
  }
  if (const json& series = field(news, "series"); series.is_object()) {
    for (const auto& [name, told] : series.items()) {
      if (curves.count(name) > 0 || curves.size() < kMostCurves) take_series(curves[name], told);
    }
  }
  if (const json& told = field(news, "nodes"); told.is_array()) {
    nodes.clear();
    for (const json& node : items(told)) nodes.push_back(read_node(node));
  }
  for (const json& mark : items(field(news, "marks"))) {
    keep_newest(marks, Note{whole(field(mark, "step")), number(field(mark, "time")),
                            text(field(mark, "kind")), text(field(mark, "text"))});
  }
  for (const json& line : items(field(news, "log"))) {
    keep_newest(log, LogLine{number(field(line, "time")), text(field(line, "level")),
                             text(field(line, "text"))});
  }
  return true;
}

}  // namespace troupe::telemetry
