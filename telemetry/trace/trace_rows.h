#pragma once

// Spans of one actor on rows as the Trace Event format asks for: on a row they lie inside each
// other or apart.

#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/base/trace.h"

namespace troupe::telemetry {

class TraceRows {
 public:
  // Spans in any order; what was sent is left out.
  explicit TraceRows(const std::vector<runtime::TraceRecord>& records);

  // In the order of their starts, of those that start together the longest first.
  const std::vector<runtime::TraceRecord>& spans() const { return spans_; }
  // Of a span, from 0.
  std::size_t row(std::size_t span) const { return rows_[span]; }
  // 1 to 32.
  std::size_t count() const { return count_; }
  // Spans for which there was no row.
  std::size_t left_out() const { return left_out_; }
  // The innermost span on its row at that time; nothing when there is none, or only one that began
  // many spans before.
  std::optional<std::size_t> span_at(runtime::TimePoint time) const;

 private:
  std::vector<runtime::TraceRecord> spans_;
  std::vector<std::size_t> rows_;
  std::size_t count_ = 1;
  std::size_t left_out_ = 0;
};

}  // namespace troupe::telemetry
