#pragma once

// As much of the wire format of protocol buffers as it takes to write event files. A message is the
// bytes of its fields one after the other. A field with its default value (0, empty) is left out
// where readers take it for that.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace troupe::telemetry {

class ProtobufMessage {
 public:
  // Fields of the types int32, int64 and enum; `value` is not negative.
  ProtobufMessage& number(int field, std::uint64_t value);
  // These are written even when they are 0: in a oneof, presence tells which field is meant.
  ProtobufMessage& real(int field, double value);
  ProtobufMessage& single(int field, float value);
  ProtobufMessage& reals(int field, std::span<const double> values);  // repeated, packed
  // Fields of the types string, bytes and message. A string has to be UTF-8.
  ProtobufMessage& bytes(int field, std::string_view value);
  ProtobufMessage& message(int field, const ProtobufMessage& value) {
    return bytes(field, value.text());
  }

  const std::string& text() const { return text_; }

 private:
  void key(int field, unsigned wire_type);

  std::string text_;
};

// Appends so many bytes of the number, the lowest first.
void append_little_endian(std::string& out, std::uint64_t value, int bytes);

}  // namespace troupe::telemetry
