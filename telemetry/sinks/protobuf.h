#pragma once

// As much of the wire format of protocol buffers as event files need, written only: a message is
// the bytes of its fields one after the other. What has its default value (0, empty) is left out
// where the format would read it so anyway.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace troupe::telemetry {

class ProtobufMessage {
 public:
  // Fields of the types int32, int64 and enum; `value` is not negative.
  ProtobufMessage& number(int field, std::uint64_t value);
  // Written also when they are 0: a oneof tells by its presence which of its fields is meant.
  ProtobufMessage& real(int field, double value);
  ProtobufMessage& single(int field, float value);
  ProtobufMessage& reals(int field, std::span<const double> values);  // repeated, packed
  // Fields of the types string, bytes and message. A string has to be UTF-8.
  ProtobufMessage& bytes(int field, std::string_view value);
  ProtobufMessage& message(int field, const ProtobufMessage& value);

  const std::string& text() const { return text_; }

 private:
  void key(int field, unsigned wire_type);

  std::string text_;
};

// Bytes of the number, the lowest first.
void append_little_endian(std::string& out, std::uint64_t value, int bytes);

}  // namespace troupe::telemetry
