#include "telemetry/trace/trace_json.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/base/json_text.h"
#include "runtime/base/json_writer.h"
#include "telemetry/trace/trace_arrows.h"
#include "telemetry/trace/trace_rows.h"

namespace troupe::telemetry {
namespace {

using runtime::ActorTrace;
using runtime::Duration;
using runtime::JsonWriter;
using runtime::TimePoint;
using runtime::TraceRecord;

// One line of the file.
struct Event {
  enum class Kind : std::uint8_t { kSpan, kSent, kHandled };  // in this order at the same time
  Kind kind = Kind::kSpan;
  TimePoint time{0};
  Duration lasts{0};
  std::size_t tid = 0;
  std::size_t pid = 0;
  const std::string* name = nullptr;  // as JSON
  std::int64_t argument = 0;          // of a span; else the arrow's id
};

bool comes_before(const Event& a, const Event& b) {
  return std::tuple(a.time, a.kind, -a.lasts) < std::tuple(b.time, b.kind, -b.lasts);
}

// Microseconds, exact to the nanosecond.
std::string microseconds(Duration time) {
  const std::int64_t ns = time.count(), size = std::abs(ns);
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

// The moment from which on records are told, so that there are no more than wanted.
TimePoint first_time(const Trace& trace) {
  std::vector<TimePoint> times;
  for (const NodeTrace& node : trace.nodes) {
    for (const ActorTrace& actor : node.actors) {
      for (const TraceRecord& record : actor.trace.records) {
        times.push_back(record.end - node.offset);
      }
    }
  }
  if (times.size() <= trace.most_records) return TimePoint::min();
  if (trace.most_records == 0) return TimePoint::max();
  const auto first = times.end() - static_cast<std::ptrdiff_t>(trace.most_records);
  std::nth_element(times.begin(), first, times.end());
  return *first;
}

class TracePrinter {
 public:
  explicit TracePrinter(const Trace& trace) : trace_(trace), from_(first_time(trace)) {}

  std::string text() {
    // Clocks are aligned by the ends of all nodes, and ends are joined by the aligned clocks.
    for (std::size_t node = 0; node < trace_.nodes.size(); ++node) add_node(node);
    align_clocks();
    const Arrows arrows = join_ends(std::move(ends_));
    add_arrows(arrows);
    std::stable_sort(events_.begin(), events_.end(), comes_before);
    for (const Event& event : events_) print(event);
    print_rest(arrows);
    return std::move(out_);
  }

 private:
  // Where a span was placed.
  struct Place {
    std::size_t tid = 0;
    std::size_t pid = 0;
    const std::string* name = nullptr;
  };

  // One more event, on a line of its own.
  template <class Inside>
  void line(const Inside& inside) {
    out_ += out_.empty() ? "{\"traceEvents\":[\n{" : ",\n{";
    JsonWriter event(out_);
    inside(event);
    out_ += '}';
  }

  // "process_name", and what else is said of processes and rows. `value`: JSON.
  void tell(const char* what, std::size_t pid, std::size_t tid, const char* argument,
            const std::string& value) {
    line([&](JsonWriter& event) {
      event.text("name", what, SIZE_MAX);
      event.text("ph", "M", 1);
      event.number("pid", pid);
      event.number("tid", tid);
      event.group("args", [&](JsonWriter& inside) { inside.json(argument, value); });
    });
  }

  void add_node(std::size_t number) {
    const NodeTrace& node = trace_.nodes[number];
    const std::size_t pid = number + 1;
    tell("process_name", pid, next_tid_, "name", runtime::json_string(node.node));
    tell("process_sort_index", pid, next_tid_, "sort_index", fmt::format("{}", number));
    for (const ActorTrace& actor : node.actors) add_actor(number, node.offset, actor);
  }

  // Places the actor's spans on rows, and notes both ends of messages: one that was handled ends in
  // its own span, and one that was sent begins in the span of the handler that sent it. Events
  // point to names, which therefore keep their addresses.
  void add_actor(std::size_t node, Duration offset, const ActorTrace& actor) {
    std::vector<TraceRecord> records;
    for (TraceRecord record : actor.trace.records) {
      record.start -= offset;
      record.end -= offset;
      if (record.end >= from_) records.push_back(record);
    }
    const std::size_t first_name = names_.size();
    for (const std::string& name : actor.trace.names) {
      names_.push_back(std::make_unique<std::string>(runtime::json_string(name)));
    }
    const TraceRows rows(records);
    spans_left_out_ += rows.left_out();
    for (std::size_t row = 0; row < rows.count(); ++row) {
      const std::string name = row == 0 ? actor.name : fmt::format("{} ({})", actor.name, row + 1);
      tell("thread_name", node + 1, next_tid_ + row, "name", runtime::json_string(name));
    }
    const std::size_t first_place = places_.size();
    for (std::size_t i = 0; i < rows.spans().size(); ++i) {
      const TraceRecord& span = rows.spans()[i];
      const Place place{next_tid_ + rows.row(i), node + 1, names_[first_name + span.name].get()};
      places_.push_back(place);
      events_.push_back({Event::Kind::kSpan, span.start, span.end - span.start, place.tid,
                         place.pid, place.name, span.argument});
      if (!span.flow.known()) continue;
      ends_.push_back({span.flow, false, node, first_place + i, span.start, span.start, span.end});
    }
    for (const TraceRecord& record : records) {
      if (!record.sent || !record.flow.known()) continue;
      const auto found = rows.span_at(record.start);
      if (!found) continue;  // its handler has not ended
      const TraceRecord& span = rows.spans()[*found];
      ends_.push_back(
          {record.flow, true, node, first_place + *found, record.start, span.start, span.end});
    }
    next_tid_ += rows.count();
  }

  // Messages tell more of clocks than their offsets do.
  void align_clocks() {
    const std::vector<Duration> moves = moves_of_clocks(ends_, trace_.nodes.size());
    for (Event& event : events_) event.time += moves[event.pid - 1];
    for (ArrowEnd& end : ends_) {
      end.time += moves[end.node];
      end.begins += moves[end.node];
      end.end += moves[end.node];
    }
  }

  void add_arrows(const Arrows& arrows) {
    std::int64_t id = 0;
    for (const Arrow& arrow : arrows.arrows) {
      ++id;
      const Place& from = places_[arrow.from.span];
      const Place& to = places_[arrow.to.span];
      events_.push_back({Event::Kind::kSent, arrow.from.time, {}, from.tid, from.pid, to.name, id});
      events_.push_back({Event::Kind::kHandled, arrow.to.time, {}, to.tid, to.pid, to.name, id});
    }
  }

  void print(const Event& event) {
    const bool is_span = event.kind == Event::Kind::kSpan;
    const bool is_sent = event.kind == Event::Kind::kSent;
    line([&](JsonWriter& out) {
      out.json("name", *event.name);
      if (!is_span) out.text("cat", "message", SIZE_MAX);
      out.text("ph", is_span ? "X" : is_sent ? "s" : "f", 1);
      if (!is_span) out.integer("id", event.argument);
      out.number("pid", event.pid);
      out.number("tid", event.tid);
      out.json("ts", microseconds(event.time));
      if (is_span) {
        out.json("dur", microseconds(event.lasts));
        out.group("args", [&](JsonWriter& args) { args.integer("argument", event.argument); });
      } else if (!is_sent) {
        out.text("bp", "e", 1);
      }
    });
  }

  void print_rest(const Arrows& arrows) {
    out_ += out_.empty() ? "{\"traceEvents\":[],\n" : "\n],\n";
    JsonWriter rest(out_);
    rest.text("displayTimeUnit", "ns", 2);
    rest.group("otherData", [&](JsonWriter& data) {
      data.number("arrows_left_out", arrows.left_out);
      data.number("spans_left_out", spans_left_out_);
      data.list("missing", trace_.missing, SIZE_MAX);
      std::vector<std::pair<std::string, Duration>> errors;
      for (const NodeTrace& node : trace_.nodes) errors.emplace_back(node.node, node.error);
      data.map("clock_error_us", errors,
               [](JsonWriter& item, Duration error) { item.json("", microseconds(error)); });
    });
    if (trace_.nodes.size() == 1) print_ends(arrows.loose, rest);
    out_ += "}\n";
  }

  void print_ends(const std::vector<ArrowEnd>& ends, JsonWriter& out) {
    out.list("ends", ends, SIZE_MAX, [&](JsonWriter& item, const ArrowEnd& end) {
      item.group("", [&](JsonWriter& fields) {
        fields.text("flow", fmt::format("{}/{}", end.flow.link, end.flow.number), SIZE_MAX);
        fields.text("ph", end.sent ? "s" : "f", 1);
        fields.number("tid", places_[end.span].tid);
        fields.json("ts", microseconds(end.time));
      });
    });
  }

  const Trace& trace_;
  const TimePoint from_;
  std::size_t next_tid_ = 1;  // rows of all nodes have numbers of their own
  std::size_t spans_left_out_ = 0;
  std::vector<std::unique_ptr<std::string>> names_;
  std::vector<Place> places_;
  std::vector<Event> events_;
  std::vector<ArrowEnd> ends_;
  std::string out_;
};

}  // namespace

std::string trace_json(const Trace& trace) { return TracePrinter(trace).text(); }

}  // namespace troupe::telemetry
