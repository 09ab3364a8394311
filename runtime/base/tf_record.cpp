#include "runtime/base/tf_record.h"

#include <bit>
#include <boost/crc.hpp>

#include "runtime/base/bytes.h"

namespace troupe::runtime {
namespace {

void append(std::string& to, const auto& bytes) {
  to.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  boost::crc_optimal<32, 0x1edc6f41, 0xffffffff, 0xffffffff, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return std::rotr(static_cast<std::uint32_t>(crc.checksum()), 15) + 0xa282ead8u;
}

std::string tf_record(std::string_view content) {
  std::string record;
  record.reserve(content.size() + 16);
  const auto length = to_little_endian(std::uint64_t{content.size()});
  append(record, length);
  append(record, to_little_endian(masked_crc32c(length)));
  record += content;
  append(record, to_little_endian(masked_crc32c(std::as_bytes(std::span(content)))));
  return record;
}

}  // namespace troupe::runtime
