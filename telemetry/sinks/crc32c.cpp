#include "telemetry/sinks/crc32c.h"

#include <array>

namespace troupe::telemetry {
namespace {

// The remainder of every byte, by the polynomial 0x1edc6f41 with its bits reversed.
constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit)
      remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? 0x82f63b78u : 0u);
    table[byte] = remainder;
  }
  return table;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = make_table();
  std::uint32_t remainder = 0xffffffffu;
  for (const char byte : bytes)
    remainder = kTable[(remainder ^ static_cast<unsigned char>(byte)) & 0xffu] ^ (remainder >> 8);
  return ~remainder;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace troupe::telemetry
