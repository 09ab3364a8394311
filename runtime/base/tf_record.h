#pragma once

// The frame of records in TensorFlow's files (tensorflow/core/lib/io/record_writer.h).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace troupe::runtime {

// CRC-32C (Castagnoli), as RFC 3720, appendix B.4 has it, masked as TensorFlow does: rotated and a
// constant added, so that bytes that hold checksums have a checksum of their own.
std::uint32_t masked_crc32c(std::span<const std::byte> bytes);

// A record: its length in 8 bytes, the masked checksum of these, the content, and its checksum.
std::string tf_record(std::string_view content);

}  // namespace troupe::runtime
