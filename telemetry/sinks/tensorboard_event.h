#pragma once

// The content of a TensorBoard event file. It holds records, each an Event in the wire format of
// protocol buffers. Field numbers are those of event.proto, summary.proto, histogram.proto and
// tensor.proto of TensorFlow.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "telemetry/histogram.h"
#include "telemetry/sinks/protobuf.h"

namespace troupe::telemetry {

// A record of the file (record_writer.cc of TensorFlow): length, checksum of the length, bytes,
// checksum of the bytes.
std::string tensorboard_record(std::string_view event);

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
// A PNG; `channels` as Image has them.
ProtobufMessage image_value(std::string_view tag, std::uint32_t width, std::uint32_t height,
                            std::uint32_t channels, std::string_view png);
// TensorBoard reads it as Markdown.
ProtobufMessage text_value(std::string_view tag, std::string_view text);

}  // namespace troupe::telemetry
