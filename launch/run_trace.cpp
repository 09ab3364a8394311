#include "launch/run_trace.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "runtime/base/json_text.h"

namespace troupe::launch {
namespace {

using runtime::json_string;
using runtime::TimePoint;
using runtime::TraceRecord;
using Microseconds = std::chrono::duration<double, std::micro>;

// Rows on which spans lie inside each other or apart, as the format asks for.
class Rows {
 public:
  // The first row on which the span crosses no other. They come in the order of their starts, of
  // those that start together the longest first.
  std::size_t place(const TraceRecord& span) {
    std::size_t row = 0;
    while (row < ends_.size() && !fits(ends_[row], span)) ++row;
    if (row == ends_.size()) ends_.emplace_back();
    ends_[row].push_back(span.end);
    return row;
  }
  std::size_t count() const { return std::max<std::size_t>(ends_.size(), 1); }

 private:
  static bool fits(std::vector<TimePoint>& ends, const TraceRecord& span) {
    while (!ends.empty() && ends.back() <= span.start) ends.pop_back();
    return ends.empty() || span.end <= ends.back();
  }
  std::vector<std::vector<TimePoint>> ends_;  // per row, of the spans that go on, outermost first
};

bool comes_before(const TraceRecord& a, const TraceRecord& b) {
  return a.start != b.start ? a.start < b.start : a.end > b.end;
}

// The actor's rows, numbered from `first` on; returns how many there are.
std::size_t print_actor(const runtime::ActorTrace& actor, std::size_t first, std::string& out) {
  std::vector<TraceRecord> spans = actor.trace.records;
  std::stable_sort(spans.begin(), spans.end(), comes_before);
  Rows rows;
  std::vector<std::size_t> places;
  for (const TraceRecord& span : spans) places.push_back(rows.place(span));
  for (std::size_t row = 0; row < rows.count(); ++row) {
    const std::string name = row == 0 ? actor.name : fmt::format("{} ({})", actor.name, row + 1);
    out +=
        fmt::format(R"({}{{"name":"thread_name","ph":"M","pid":1,"tid":{},"args":{{"name":{}}}}})",
                    first + row == 0 ? "\n" : ",\n", first + row, json_string(name));
  }
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const TraceRecord& span = spans[i];
    out += fmt::format(
        ",\n"
        R"({{"name":{},"ph":"X","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},)"
        R"("args":{{"argument":{}}}}})",
        json_string(actor.trace.names[span.name]), first + places[i],
        Microseconds(span.start).count(), Microseconds(span.end - span.start).count(),
        span.argument);
  }
  return rows.count();
}

}  // namespace

std::string trace_json(const std::vector<runtime::ActorTrace>& traces) {
  std::string events;
  std::size_t rows = 0;
  for (const runtime::ActorTrace& actor : traces) rows += print_actor(actor, rows, events);
  return fmt::format("{{\"traceEvents\":[{}\n]}}\n", events);
}

runtime::Result<void> write_trace(const std::string& path, runtime::Disk& disk,
                                  const std::vector<runtime::ActorTrace>& traces) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty()) RETURN_IF_ERROR(disk.make_folder(folder));
  const std::string text = trace_json(traces);
  return disk.replace(path, std::as_bytes(std::span{text}));
}

}  // namespace troupe::launch
