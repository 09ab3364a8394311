#pragma once

// The news of a run, and their lists of fields (runtime/base/fields.h): the JSON "history and
// update" of docs/watching.md. A follower keeps all that it knows of the run in the same form.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "telemetry/history.h"
#include "telemetry/node_sample.h"
#include "telemetry/record.h"

namespace troupe::telemetry {

struct Mark {
  std::string kind;
  std::uint64_t step = 0;
  double time = 0.0;
  std::string text;
};

struct Validation {
  std::uint64_t step = 0;
  double time = 0.0;
  std::string rows;  // JSON
};

// A part that is absent, or an empty list, has not changed or is not known.
struct HistoryNews {
  // This is all that was known of the run; with the news it becomes all that is known now. The
  // newest kNotes marks, validations and lines of log stay.
  void take(HistoryNews news);
  // Null: there is no such curve.
  const SeriesNews* find(std::string_view curve) const;
  static constexpr std::size_t kNotes = 1000;

  std::uint64_t version = 0;
  bool whole = false;
  double now = 0.0;
  std::optional<RunFacts> run;
  std::optional<RunProgress> progress;
  std::vector<std::pair<std::string, SeriesNews>> series;  // in the order of their names
  std::optional<std::vector<NodeState>> nodes;
  std::optional<std::vector<std::uint64_t>> showers;
  std::optional<BillFacts> bill;
  std::vector<Mark> marks;
  std::vector<Validation> validations;
  std::vector<LogLine> log;
};

template <class Archive>
void fields(Archive& archive, runtime::Like<RunProgress> auto& progress) {
  archive.text("state", progress.state, kAnyLength);
  archive.text("error", progress.error, kAnyLength);
  archive.number("steps", progress.steps);
  archive.number("iterations", progress.iterations);
  archive.number("epochs", progress.epochs);
  archive.number("epoch", progress.epoch);
  archive.number("all_epochs", progress.all_epochs);
  archive.number("events", progress.events);
  archive.real("events_per_second", progress.events_per_second);
  archive.perhaps("seconds_left", progress.seconds_left);
  archive.number("dropped", progress.dropped);
  archive.moment("began", progress.began);
  archive.moment("newest", progress.newest);
  archive.real("node_hours", progress.node_hours);
  archive.real("core_hours", progress.core_hours);
  archive.real("cost", progress.cost);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<NodeState> auto& node) {
  archive.text("name", node.name, kAnyLength);
  archive.text("host", node.host, kAnyLength);
  archive.text("role", node.role, kAnyLength);
  archive.number("pid", node.pid);
  archive.text("state", node.state, kAnyLength);
  archive.text("cause", node.cause, kAnyLength);
  archive.moment("since", node.since);
  archive.real("cores", node.cores);
  archive.integer("resident_bytes", node.sample.resident_bytes);
  archive.real("sent_per_second", node.sent_per_second);
  archive.real("received_per_second", node.received_per_second);
  archive.real("clock_error", node.clock_error);
  archive.list("actors", node.sample.actors, kMostSampleActors);
  archive.list("links", node.sample.links, kMostSampleLinks);
  archive.list("devices", node.sample.devices, kMostSampleDevices);
}

// A page draws no finer.
inline constexpr int kCurveDigits = 6;

template <class Archive>
void fields(Archive& archive, runtime::Like<SeriesNews> auto& series) {
  const auto column = [&](const char* name, double SeriesPoint::*part) {
    archive.list(name, series.points, kAnyLength,
                 [part](auto& item, auto& point) { item.real("", point.*part, kCurveDigits); });
  };
  archive.number("width", series.width);
  archive.number("from", series.from);
  archive.list("x", series.points, kAnyLength,
               [](auto& item, auto& point) { item.number("", point.x); });
  column("mean", &SeriesPoint::mean);
  column("low", &SeriesPoint::low);
  column("high", &SeriesPoint::high);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<Mark> auto& mark) {
  archive.text("kind", mark.kind, kAnyLength);
  archive.number("step", mark.step);
  archive.moment("time", mark.time);
  archive.text("text", mark.text, kAnyLength);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<Validation> auto& validation) {
  archive.number("step", validation.step);
  archive.moment("time", validation.time);
  archive.json("rows", validation.rows);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<LogLine> auto& line) {
  archive.moment("time", line.time);
  archive.text("level", line.level, kAnyLength);
  archive.text("text", line.text, kAnyLength);
}

template <class Archive>
void fields(Archive& archive, runtime::Like<HistoryNews> auto& news) {
  archive.number("version", news.version);
  archive.flag("whole", news.whole);
  archive.moment("now", news.now);
  archive.last("run", news.run);
  archive.last("progress", news.progress);
  archive.map("series", news.series, [](auto& item, auto& series) { item.element(series); });
  archive.last("nodes", news.nodes);
  archive.last("showers", news.showers);
  archive.last("bill", news.bill);
  archive.last("marks", news.marks);
  archive.last("validations", news.validations);
  archive.last("log", news.log);
}

inline const char* fault_of(const HistoryNews& news) {
  return news.version == 0 ? "news without a version" : nullptr;
}

}  // namespace troupe::telemetry
