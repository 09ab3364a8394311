#pragma once

// CRC-32C (Castagnoli), as RFC 3720, appendix B.4 has it.

#include <cstdint>
#include <string_view>

namespace troupe::telemetry {

// Of "123456789" 0xe3069283. Some 400 MB/s: for records, not for gradients.
std::uint32_t crc32c(std::string_view bytes);

// As TensorFlow keeps it in its files, so that the checksum of bytes that hold checksums is none of
// them: rotated right by 15 bits, plus a constant.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace troupe::telemetry
