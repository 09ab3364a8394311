#pragma once

// The syntax of OpenMetrics 1.0 and of the text format of Prometheus
// (https://github.com/OpenObservability/OpenMetrics, exposition formats of Prometheus 0.0.4).

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "telemetry/open_metrics.h"

namespace troupe::telemetry {

// The samples of one family, by their labels. The last one with the same labels stays.
class MetricSamples {
 public:
  using Label = std::pair<std::string_view, std::string_view>;

  // Label values may hold anything; bytes that are not UTF-8 become U+FFFD.
  void add(std::initializer_list<Label> labels, double value);

  const std::map<std::string, double>& by_labels() const { return samples_; }

 private:
  std::map<std::string, double> samples_;
};

struct MetricFamily {
  enum class Type { kGauge, kCounter, kInfo };
  Type type = Type::kGauge;
  std::string_view name;  // without "_total" and "_info"; ends with the unit where there is one
  std::string_view unit;  // "seconds", "bytes" or ""
  std::string_view help;  // without line breaks and backslashes
};

class MetricsText {
 public:
  explicit MetricsText(MetricsFormat format) : format_(format) {}

  // Adds nothing when there are no samples. Each family comes once.
  void add(const MetricFamily& family, const MetricSamples& samples);
  // A family of one sample without labels.
  void add(const MetricFamily& family, double value);

  std::string finish() &&;

 private:
  MetricsFormat format_;
  std::string text_;
};

}  // namespace troupe::telemetry
