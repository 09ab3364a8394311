#pragma once

// Puts the spans of one actor on rows, as the Trace Event format asks: on a row they lie inside
// each other or apart.

#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/base/trace.h"

namespace troupe::telemetry {

class TraceRows {
 public:
  // The spans come in any order. Records of sendings are left out.
  explicit TraceRows(const std::vector<runtime::TraceRecord>& records);

  // In the order of their starts. The longest of those that start together is first.
  const std::vector<runtime::TraceRecord>& spans() const { return spans_; }
  // The row of a span, from 0.
  std::size_t row(std::size_t span) const { return rows_[span]; }
  // How many rows there are: 1 to 32.
  std::size_t count() const { return count_; }
  // How many spans found no row.
  std::size_t left_out() const { return left_out_; }
  // The innermost span at that time. Nothing: there is none, or it began many spans before.
  std::optional<std::size_t> span_at(runtime::TimePoint time) const;

 private:
  std::vector<runtime::TraceRecord> spans_;
  std::vector<std::size_t> rows_;
  std::size_t count_ = 1;
  std::size_t left_out_ = 0;
};

}  // namespace troupe::telemetry
