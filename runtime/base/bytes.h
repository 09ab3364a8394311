#pragma once

// Numbers as bytes in an order that does not depend on the machine.

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

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

// Two lower-case hexadecimal digits for each byte.
inline std::string hex_text(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    for (const int shift : {4, 0}) {
      text += "0123456789abcdef"[std::to_integer<unsigned>(byte) >> shift & 0xf];
    }
  }
  return text;
}

// Reads two digits for each of the bytes, in either case; false: the text is anything else.
inline bool read_hex(std::string_view text, std::span<std::byte> bytes) {
  if (text.size() != 2 * bytes.size()) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* const digits = text.data() + 2 * i;
    std::uint8_t byte = 0;
    const auto parsed = std::from_chars(digits, digits + 2, byte, 16);
    if (parsed.ec != std::errc() || parsed.ptr != digits + 2) return false;
    bytes[i] = static_cast<std::byte>(byte);
  }
  return true;
}

}  // namespace troupe::runtime
