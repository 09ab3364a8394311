#pragma once

// A run's newest numbers as Prometheus and others scrape them. docs/watching.md lists the names.

#include <cstdint>
#include <string>
#include <string_view>

#include "telemetry/history.h"

namespace troupe::telemetry {

// Two formats for the same content. They differ in the name of a counter's family, and the newer
// one has more kinds of lines.
enum class MetricsFormat : std::uint8_t {
  kOpenMetrics,  // OpenMetrics 1.0
  kPrometheus,   // the text format 0.0.4 of Prometheus, which most tools can read
};

// The format for a client with this Accept header: OpenMetrics where the header names it.
MetricsFormat metrics_format(std::string_view accept);

// For the answer's Content-Type header.
std::string_view content_type(MetricsFormat format);

// Any thread. The text is UTF-8 and has every family once, with all its samples. Numbers that are
// not known yet are absent. Counters begin anew with a session, which readers of counters
// understand.
std::string open_metrics(const History& history,
                         MetricsFormat format = MetricsFormat::kOpenMetrics);

}  // namespace troupe::telemetry
