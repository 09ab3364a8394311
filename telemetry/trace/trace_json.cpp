#include "telemetry/trace/trace_json.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/base/json_text.h"
#include "telemetry/trace/trace_arrows.h"
#include "telemetry/trace/trace_rows.h"

namespace troupe::telemetry {
namespace {

using runtime::ActorTrace;
using runtime::Duration;
using runtime::json_string;
using runtime::TimePoint;
using runtime::TraceRecord;

// One line of the file.
struct Event {
  enum class Kind : std::uint8_t { kSpan, kSent, kHandled };  // in their order at one time
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
void print_time(std::int64_t nanoseconds, fmt::memory_buffer& out) {
  const char* const sign = nanoseconds < 0 ? "-" : "";
  const std::uint64_t size = nanoseconds < 0
                                 ? std::uint64_t{0} - static_cast<std::uint64_t>(nanoseconds)
                                 : static_cast<std::uint64_t>(nanoseconds);
  fmt::format_to(std::back_inserter(out), "{}{}.{:03}", sign, size / 1000, size % 1000);
}

// Of the trace's clock. Whatever another node says its times are, this overflows nowhere.
TimePoint moved(TimePoint time, Duration offset) {
  return TimePoint{static_cast<std::int64_t>(static_cast<std::uint64_t>(time.count()) -
                                             static_cast<std::uint64_t>(offset.count()))};
}

// From when on records are told, so that there are no more than wanted.
TimePoint first_time(const Trace& trace) {
  std::vector<TimePoint> times;
  for (const NodeTrace& node : trace.nodes) {
    for (const ActorTrace& actor : node.actors) {
      for (const TraceRecord& record : actor.trace.records) {
        times.push_back(moved(record.end, node.offset));
      }
    }
  }
  if (times.size() <= trace.most_records) return TimePoint::min();
  if (trace.most_records == 0) return TimePoint::max();
  const auto first = times.end() - static_cast<std::ptrdiff_t>(trace.most_records);
  std::nth_element(times.begin(), first, times.end());
  return *first;
}

class Printer {
 public:
  explicit Printer(const Trace& trace) : trace_(trace), from_(first_time(trace)) {}

  std::string text() {
    for (std::size_t node = 0; node < trace_.nodes.size(); ++node) add_node(node);
    align_clocks();
    const Arrows arrows = join_ends(std::move(ends_));
    add_arrows(arrows);
    std::stable_sort(events_.begin(), events_.end(), comes_before);
    for (const Event& event : events_) print(event);
    print_rest(arrows);
    return fmt::to_string(out_);
  }

 private:
  // Of a span that has been placed.
  struct Place {
    std::size_t tid = 0;
    std::size_t pid = 0;
    const std::string* name = nullptr;
  };

  // "process_name", and what else is said of processes and rows.
  void tell(const char* what, std::size_t pid, std::size_t tid, const std::string& argument) {
    fmt::format_to(std::back_inserter(out_),
                   R"({}{{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{{}}}}})",
                   out_.size() == 0 ? "{\"traceEvents\":[\n" : ",\n", what, pid, tid, argument);
  }

  void add_node(std::size_t number) {
    const NodeTrace& node = trace_.nodes[number];
    const std::size_t pid = number + 1;
    tell("process_name", pid, next_tid_, fmt::format(R"("name":{})", json_string(node.node)));
    tell("process_sort_index", pid, next_tid_, fmt::format(R"("sort_index":{})", number));
    for (const ActorTrace& actor : node.actors) add_actor(number, node.offset, actor);
  }

  void add_actor(std::size_t node, Duration offset, const ActorTrace& actor) {
    std::vector<TraceRecord> records;
    for (TraceRecord record : actor.trace.records) {
      record.start = moved(record.start, offset);
      record.end = moved(record.end, offset);
      if (record.end >= from_) records.push_back(record);
    }
    const std::size_t first_name = names_.size();
    for (const std::string& name : actor.trace.names) {
      names_.push_back(std::make_unique<std::string>(json_string(name)));
    }
    const TraceRows rows(records);
    spans_left_out_ += rows.left_out();
    for (std::size_t row = 0; row < rows.count(); ++row) {
      const std::string name = row == 0 ? actor.name : fmt::format("{} ({})", actor.name, row + 1);
      tell("thread_name", node + 1, next_tid_ + row,
           fmt::format(R"("name":{})", json_string(name)));
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

  // Closer than the offsets are known.
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
    auto out = std::back_inserter(out_);
    if (event.kind == Event::Kind::kSpan) {
      fmt::format_to(out,
                     ",\n{{\"name\":{},\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":", *event.name,
                     event.pid, event.tid);
      print_time(event.time.count(), out_);
      fmt::format_to(out, ",\"dur\":");
      print_time(event.lasts.count(), out_);
      fmt::format_to(out, ",\"args\":{{\"argument\":{}}}}}", event.argument);
      return;
    }
    const bool sent = event.kind == Event::Kind::kSent;
    fmt::format_to(
        out,
        ",\n{{\"name\":{},\"cat\":\"message\",\"ph\":\"{}\",\"id\":{},\"pid\":{},\"tid\":{},"
        "\"ts\":",
        *event.name, sent ? "s" : "f", event.argument, event.pid, event.tid);
    print_time(event.time.count(), out_);
    fmt::format_to(out, "{}", sent ? "}" : ",\"bp\":\"e\"}");
  }

  void print_rest(const Arrows& arrows) {
    auto out = std::back_inserter(out_);
    if (out_.size() == 0) fmt::format_to(out, "{{\"traceEvents\":[");
    fmt::format_to(out, "\n],\n\"displayTimeUnit\":\"ns\",\n\"otherData\":{{\"arrows_left_out\":{}",
                   arrows.left_out);
    fmt::format_to(out, ",\"spans_left_out\":{},\"missing\":[", spans_left_out_);
    for (std::size_t i = 0; i < trace_.missing.size(); ++i) {
      fmt::format_to(out, "{}{}", i == 0 ? "" : ",", json_string(trace_.missing[i]));
    }
    fmt::format_to(out, "],\"clock_error_us\":{{");
    for (std::size_t i = 0; i < trace_.nodes.size(); ++i) {
      fmt::format_to(out, "{}{}:", i == 0 ? "" : ",", json_string(trace_.nodes[i].node));
      print_time(trace_.nodes[i].error.count(), out_);
    }
    fmt::format_to(out, "}}}}");
    if (trace_.nodes.size() == 1) print_ends(arrows.loose);
    fmt::format_to(out, "}}\n");
  }

  void print_ends(const std::vector<ArrowEnd>& ends) {
    auto out = std::back_inserter(out_);
    fmt::format_to(out, ",\n\"ends\":[");
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const ArrowEnd& end = ends[i];
      fmt::format_to(out,
                     "{}\n{{\"flow\":\"{}/{}\",\"ph\":\"{}\",\"tid\":{},\"ts\":", i == 0 ? "" : ",",
                     end.flow.link, end.flow.number, end.sent ? "s" : "f", places_[end.span].tid);
      print_time(end.time.count(), out_);
      fmt::format_to(out, "}}");
    }
    fmt::format_to(out, "]");
  }

  const Trace& trace_;
  const TimePoint from_;
  std::size_t next_tid_ = 1;  // rows of all nodes have numbers of their own
  std::size_t spans_left_out_ = 0;
  std::vector<std::unique_ptr<std::string>> names_;
  std::vector<Place> places_;
  std::vector<Event> events_;
  std::vector<ArrowEnd> ends_;
  fmt::memory_buffer out_;
};

}  // namespace

std::string trace_json(const Trace& trace) { return Printer(trace).text(); }

}  // namespace troupe::telemetry
