#include "telemetry/metrics_text.h"

#include <cmath>

#include <fmt/format.h>

#include "runtime/base/utf8.h"

namespace troupe::telemetry {
namespace {

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0.0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string escaped(std::string_view value) {
  std::string out;
  for (const char letter : runtime::valid_utf8(value)) {
    if (letter == '\\' || letter == '"') out += '\\';
    if (letter == '\n') {
      out += "\\n";
    } else {
      out += letter;
    }
  }
  return out;
}

std::string_view suffix(MetricFamily::Type type) {
  switch (type) {
    case MetricFamily::Type::kGauge:
      return "";
    case MetricFamily::Type::kCounter:
      return "_total";
    case MetricFamily::Type::kInfo:
      return "_info";
  }
  return "";
}

std::string_view type_name(MetricFamily::Type type, MetricsFormat format) {
  if (type == MetricFamily::Type::kCounter) return "counter";
  const bool info = type == MetricFamily::Type::kInfo && format == MetricsFormat::kOpenMetrics;
  return info ? "info" : "gauge";
}

}  // namespace

void MetricSamples::add(std::initializer_list<Label> labels, double value) {
  std::string text;
  for (const auto& [name, content] : labels)
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "{" : ",", name, escaped(content));
  if (!text.empty()) text += '}';
  samples_[text] = value;
}

void MetricsText::add(const MetricFamily& family, const MetricSamples& samples) {
  if (samples.by_labels().empty()) return;
  const std::string sample = fmt::format("{}{}", family.name, suffix(family.type));
  // Prometheus' own format has no families: it describes the name that stands before the number.
  const bool open = format_ == MetricsFormat::kOpenMetrics;
  const std::string_view described = open ? family.name : std::string_view(sample);
  text_ += fmt::format("# TYPE {} {}\n", described, type_name(family.type, format_));
  if (open && !family.unit.empty()) text_ += fmt::format("# UNIT {} {}\n", described, family.unit);
  text_ += fmt::format("# HELP {} {}\n", described, family.help);
  for (const auto& [labels, value] : samples.by_labels())
    text_ += fmt::format("{}{} {}\n", sample, labels, number(value));
}

void MetricsText::add(const MetricFamily& family, double value) {
  MetricSamples samples;
  samples.add({}, value);
  add(family, samples);
}

std::string MetricsText::finish() && {
  if (format_ == MetricsFormat::kOpenMetrics) text_ += "# EOF\n";
  return std::move(text_);
}

}  // namespace troupe::telemetry
