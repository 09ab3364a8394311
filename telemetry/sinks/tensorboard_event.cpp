#include "telemetry/sinks/tensorboard_event.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/utf8.h"

namespace troupe::telemetry {
namespace {

using runtime::valid_utf8;

ProtobufMessage event(double time, std::uint64_t step) {
  // int64 in the file.
  constexpr std::uint64_t kMostSteps = std::numeric_limits<std::int64_t>::max();
  return ProtobufMessage().real(1, time).number(2, std::min(step, kMostSteps));
}

// Converting a number that no float can hold is undefined.
float single(double value) {
  if (std::abs(value) > std::numeric_limits<float>::max())
    return std::copysign(std::numeric_limits<float>::infinity(),
                         static_cast<float>(value < 0 ? -1 : 1));
  return static_cast<float>(value);
}

ProtobufMessage tagged(std::string_view tag) { return ProtobufMessage().bytes(1, valid_utf8(tag)); }

}  // namespace

Histogram histogram_of(double low, double high, std::span<const double> counts) {
  if (!std::isfinite(low) || !std::isfinite(high) || high <= low || counts.empty()) return {};
  Histogram result;
  result.low = low;
  result.high = high;
  // Not low + i * (high - low): the difference of two doubles may be too large for one.
  for (std::size_t i = 0; i <= counts.size(); ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(counts.size());
    result.edges.push_back(low * (1.0 - part) + high * part);
  }
  result.edges.back() = high;
  result.counts.assign(counts.begin(), counts.end());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double middle = result.edges[i] * 0.5 + result.edges[i + 1] * 0.5;
    result.count += counts[i];
    result.sum += counts[i] * middle;
    result.sum_squares += counts[i] * middle * middle;
  }
  return result;
}

std::string version_event(double time) { return event(time, 0).bytes(3, "brain.Event:2").text(); }

std::string session_event(double time, std::uint64_t step) {
  constexpr std::uint64_t kStart = 1;
  return event(time, step).message(7, ProtobufMessage().number(1, kStart)).text();
}

std::string summary_event(double time, std::uint64_t step,
                          std::span<const ProtobufMessage> values) {
  ProtobufMessage summary;
  for (const ProtobufMessage& value : values) summary.message(1, value);
  return event(time, step).message(5, summary).text();
}

ProtobufMessage scalar_value(std::string_view tag, double value) {
  return tagged(tag).single(2, single(value));
}

ProtobufMessage histogram_value(std::string_view tag, const Histogram& histogram) {
  ProtobufMessage content;
  content.real(1, histogram.low).real(2, histogram.high).real(3, histogram.count);
  content.real(4, histogram.sum).real(5, histogram.sum_squares);
  // The format has upper edges only.
  const std::span edges(histogram.edges);
  content.reals(6, edges.empty() ? edges : edges.subspan(1)).reals(7, histogram.counts);
  return tagged(tag).message(5, content);
}

ProtobufMessage image_value(std::string_view tag, std::uint32_t width, std::uint32_t height,
                            std::string_view png) {
  constexpr std::uint64_t kGrey = 1;  // channels
  ProtobufMessage content;
  content.number(1, height).number(2, width).number(3, kGrey).bytes(4, png);
  return tagged(tag).message(4, content);
}

ProtobufMessage text_value(std::string_view tag, std::string_view text) {
  constexpr std::uint64_t kString = 7;       // DataType DT_STRING
  constexpr std::uint64_t kTensorClass = 2;  // DataClass DATA_CLASS_TENSOR
  const ProtobufMessage plugin = ProtobufMessage().bytes(1, "text");
  const ProtobufMessage metadata = ProtobufMessage().message(1, plugin).number(4, kTensorClass);
  const ProtobufMessage shape = ProtobufMessage().message(2, ProtobufMessage().number(1, 1));
  ProtobufMessage tensor;
  tensor.number(1, kString).message(2, shape).bytes(8, valid_utf8(text));
  return tagged(tag).message(8, tensor).message(9, metadata);
}

ProtobufMessage plugin_value(std::string_view tag, std::string_view plugin,
                             const ProtobufMessage& content) {
  const ProtobufMessage data = ProtobufMessage().bytes(1, plugin).message(2, content);
  return tagged(tag).message(9, ProtobufMessage().message(1, data));
}

}  // namespace troupe::telemetry
