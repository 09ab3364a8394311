#pragma once

// A run's newest numbers as Prometheus and others scrape them. docs/watching.md lists the names.

#include <cstdint>
#include <string>
#include <string_view>

#include "telemetry/history.h"

namespace troupe::telemetry {

// Two ways to write the same: they differ in how the family of a counter is called, and in the
// lines that only the newer one has.
enum class MetricsFormat : std::uint8_t {
  kOpenMetrics,  // OpenMetrics 1.0
  kPrometheus,   // the text format 0.0.4 of Prometheus, which most tools can read
};

// What who asks with this Accept header wants: OpenMetrics where it is named.
MetricsFormat metrics_format(std::string_view accept);

// For the answer's Content-Type header.
std::string_view content_type(MetricsFormat format);

// Any thread. UTF-8; every family once, with all its samples. Counters begin anew with a session,
// which readers of counters understand. What is not known yet is absent.
std::string open_metrics(const History& history,
                         MetricsFormat format = MetricsFormat::kOpenMetrics);

}  // namespace troupe::telemetry
