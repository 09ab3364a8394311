#include "telemetry/trace/trace_rows.h"

#include <algorithm>

namespace troupe::telemetry {
namespace {

using runtime::TimePoint;
using runtime::TraceRecord;

// How many spans inside a handler's may begin and end before the time that is looked for.
constexpr std::size_t kMostLooks = 1000;
// An actor has few spans under way at a time. A trace that says otherwise need not be shown in
// full, but must not cost the square of its length.
constexpr std::size_t kMostRows = 32;

bool starts_before(const TraceRecord& a, const TraceRecord& b) {
  return a.start != b.start ? a.start < b.start : a.end > b.end;
}

// `ends` are the ends of the spans that go on, on one row, the outermost first.
bool fits(std::vector<TimePoint>& ends, const TraceRecord& span) {
  while (!ends.empty() && ends.back() <= span.start) ends.pop_back();
  return ends.empty() || span.end <= ends.back();
}

}  // namespace

// Every span goes on the first row on which it lies inside the spans that go on, or after them. The
// order of their starts makes the ends that each row keeps enough to tell that.
TraceRows::TraceRows(const std::vector<TraceRecord>& records) {
  for (const TraceRecord& record : records) {
    if (!record.sent && record.end >= record.start) spans_.push_back(record);
  }
  std::stable_sort(spans_.begin(), spans_.end(), starts_before);
  std::vector<std::vector<TimePoint>> ends;  // by row
  std::size_t kept = 0;
  for (const TraceRecord& span : spans_) {
    std::size_t row = 0;
    while (row < ends.size() && !fits(ends[row], span)) ++row;
    if (row == kMostRows) continue;
    if (row == ends.size()) ends.emplace_back();
    ends[row].push_back(span.end);
    rows_.push_back(row);
    spans_[kept++] = span;
  }
  left_out_ = spans_.size() - kept;
  spans_.resize(kept);
  count_ = std::max<std::size_t>(ends.size(), 1);
}

std::optional<std::size_t> TraceRows::span_at(TimePoint time) const {
  const auto later =
      std::upper_bound(spans_.begin(), spans_.end(), time,
                       [](TimePoint at, const TraceRecord& span) { return at < span.start; });
  std::size_t index = static_cast<std::size_t>(later - spans_.begin());
  for (std::size_t looks = 0; index > 0 && looks < kMostLooks; ++looks) {
    if (spans_[--index].end >= time) return index;
  }
  return std::nullopt;
}

}  // namespace troupe::telemetry
