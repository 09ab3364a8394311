#pragma once

// CRC-32C (Castagnoli), as RFC 3720, appendix B.4 has it.

#include <cstdint>
#include <string_view>

namespace troupe::telemetry {

// That of "123456789" is 0xe3069283. Runs at some 400 MB/s: for records, not for gradients.
std::uint32_t crc32c(std::string_view bytes);

// As TensorFlow has it in its files: rotated right by 15 bits, plus a constant. So bytes that hold
// checksums have a checksum of their own.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace troupe::telemetry
