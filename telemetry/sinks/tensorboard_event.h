#pragma once

// The content of a TensorBoard event file. It holds records, each an Event in the wire format of
// protocol buffers. Field numbers are those of event.proto, summary.proto, histogram.proto and
// tensor.proto of TensorFlow.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/sinks/protobuf.h"

namespace troupe::telemetry {

// How numbers are spread, in buckets.
struct Histogram {
  double low = 0.0, high = 0.0;  // the range that was counted
  double count = 0.0, sum = 0.0, sum_squares = 0.0;
  // Bucket i reaches from edge i to edge i + 1: one edge more than buckets, or none of both.
  std::vector<double> edges;
  std::vector<double> counts;
};

// The histogram of counts in buckets of equal width. Its sums are those of the buckets' middles.
// Empty when there is no such range (not finite, or high <= low).
Histogram histogram_of(double low, double high, std::span<const double> counts);

// Times are seconds since 1970.
// The first event of every file.
std::string version_event(double time);
// A session begins, and `step` is the first that it makes. Readers forget that step and later ones
// of the session before, since they are made again.
std::string session_event(double time, std::uint64_t step);
// Numbers, pictures or texts of a step, made by the functions below.
std::string summary_event(double time, std::uint64_t step, std::span<const ProtobufMessage> values);

// Tags group at "/". Bytes that are not UTF-8 become U+FFFD.
// The value is kept in single precision. NaN and infinities stay what they are, and a number beyond
// single precision becomes infinite.
ProtobufMessage scalar_value(std::string_view tag, double value);
ProtobufMessage histogram_value(std::string_view tag, const Histogram& histogram);
// A PNG of grey pixels.
ProtobufMessage image_value(std::string_view tag, std::uint32_t width, std::uint32_t height,
                            std::string_view png);
// TensorBoard reads it as Markdown.
ProtobufMessage text_value(std::string_view tag, std::string_view text);
// Records that only one of TensorBoard's plugins reads.
ProtobufMessage plugin_value(std::string_view tag, std::string_view plugin,
                             const ProtobufMessage& content);

}  // namespace troupe::telemetry
