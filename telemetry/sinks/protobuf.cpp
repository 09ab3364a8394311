#include "telemetry/sinks/protobuf.h"

#include <bit>

#include "runtime/base/bytes.h"

namespace troupe::telemetry {
namespace {

// https://protobuf.dev/programming-guides/encoding
enum WireType : unsigned { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

}  // namespace

void append_little_endian(std::string& out, std::uint64_t value, int bytes) {
  const auto all = runtime::to_little_endian(value);
  out.append(reinterpret_cast<const char*>(all.data()), static_cast<std::size_t>(bytes));
}

void ProtobufMessage::key(int field, unsigned wire_type) {
  runtime::append_varint(text_, static_cast<std::uint64_t>(field) << 3 | wire_type);
}

ProtobufMessage& ProtobufMessage::number(int field, std::uint64_t value) {
  if (value == 0) return *this;
  key(field, kVarint);
  runtime::append_varint(text_, value);
  return *this;
}

ProtobufMessage& ProtobufMessage::real(int field, double value) {
  key(field, kFixed64);
  append_little_endian(text_, std::bit_cast<std::uint64_t>(value), 8);
  return *this;
}

ProtobufMessage& ProtobufMessage::single(int field, float value) {
  key(field, kFixed32);
  append_little_endian(text_, std::bit_cast<std::uint32_t>(value), 4);
  return *this;
}

ProtobufMessage& ProtobufMessage::reals(int field, std::span<const double> values) {
  if (values.empty()) return *this;
  std::string packed;
  for (const double value : values) {
    append_little_endian(packed, std::bit_cast<std::uint64_t>(value), 8);
  }
  return bytes(field, packed);
}

ProtobufMessage& ProtobufMessage::bytes(int field, std::string_view value) {
  key(field, kLength);
  runtime::append_varint(text_, value.size());
  text_ += value;
  return *this;
}

}  // namespace troupe::telemetry
