#pragma once

// Numbers as bytes in an order that does not depend on the machine.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::runtime {

// Least significant byte first.
template <std::unsigned_integral T>
std::array<std::byte, sizeof(T)> to_little_endian(T value) {
  std::array<std::byte, sizeof(T)> bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[i] = static_cast<std::byte>(std::uint64_t{value} >> (8 * i));
  }
  return bytes;
}

// `bytes` are at most eight.
inline std::uint64_t from_little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return value;
}

// Most significant byte first.
template <std::unsigned_integral T>
std::array<std::byte, sizeof(T)> to_big_endian(T value) {
  std::array<std::byte, sizeof(T)> bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[sizeof(T) - 1 - i] = static_cast<std::byte>(std::uint64_t{value} >> (8 * i));
  }
  return bytes;
}

// `bytes` are at most eight.
inline std::uint64_t from_big_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<std::uint64_t>(byte);
  return value;
}

// Appends the number, seven bits a byte, the lowest first. The top bit says that more follow.
template <class Bytes>
void append_varint(Bytes& out, std::uint64_t value) {
  using Byte = typename Bytes::value_type;
  for (; value >= 128; value >>= 7) out.push_back(static_cast<Byte>(value | 128));
  out.push_back(static_cast<Byte>(value));
}

}  // namespace troupe::runtime
