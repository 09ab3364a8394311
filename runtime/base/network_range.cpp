#include "runtime/base/network_range.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <string>

namespace troupe::runtime {
namespace {

constexpr std::size_t kV4At = 12;  // bytes of IPv6 in front of an IPv4 address
constexpr int kV4Bits = 8 * static_cast<int>(kV4At);

}  // namespace

bool NetworkRange::read(std::string_view text, Bytes& bytes, bool& is_v4) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const std::string terminated(text);
  bytes = {};
  is_v4 = ::inet_pton(AF_INET, terminated.c_str(), bytes.data() + kV4At) == 1;
  if (is_v4) {
    bytes[kV4At - 2] = bytes[kV4At - 1] = 0xff;
    return true;
  }
  return ::inet_pton(AF_INET6, terminated.c_str(), bytes.data()) == 1;
}

Result<NetworkRange> NetworkRange::parse(std::string_view text) {
  NetworkRange range;
  if (text == "any") {
    range.bits_ = 0;
    range.holds_v4_ = true;
    return range;
  }
  const std::size_t slash = text.find('/');
  int bits = -1;
  if (slash != std::string_view::npos &&
      read(text.substr(0, slash), range.bytes_, range.holds_v4_)) {
    const char* const end = text.data() + text.size();
    const auto [at, failure] = std::from_chars(text.data() + slash + 1, end, bits);
    if (failure != std::errc() || at != end) bits = -1;
  }
  if (bits < 0 || bits > (range.holds_v4_ ? 32 : 128)) {
    return Error{ErrorKind::kUsage,
                 fmt::format("\"{}\" is not a network; give one such as 10.1.0.0/16 or fd00::/8, "
                             "or any",
                             text)};
  }
  range.bits_ = range.holds_v4_ ? kV4Bits + bits : bits;
  return range;
}

bool NetworkRange::has(std::string_view address) const {
  Bytes bytes;
  bool is_v4 = false;
  if (bits_ < 0 || !read(address, bytes, is_v4)) return false;
  if (is_v4 && !holds_v4_) return false;
  for (int bit = 0; bit < bits_; bit += 8) {
    const int counted = std::min(8, bits_ - bit);
    const auto mask = static_cast<unsigned char>(0xff << (8 - counted));
    const auto at = static_cast<std::size_t>(bit / 8);
    if ((bytes[at] & mask) != (bytes_[at] & mask)) return false;
  }
  return true;
}

int NetworkRange::bits_alike(std::string_view address, std::string_view other) {
  Bytes bytes, others;
  bool is_v4 = false, other_is_v4 = false;
  if (!read(address, bytes, is_v4) || !read(other, others, other_is_v4)) return 0;
  if (is_v4 != other_is_v4) return 0;
  int bits = 0;
  for (std::size_t i = is_v4 ? kV4At : 0; i < bytes.size(); ++i) {
    const auto differing = static_cast<unsigned char>(bytes[i] ^ others[i]);
    bits += std::countl_zero(differing);
    if (differing != 0) break;
  }
  return bits;
}

}  // namespace troupe::runtime
