#pragma once

// Networks as people name them: "10.1.0.0/16", "fd00::/8", or "any".

#include <array>
#include <cstddef>
#include <string_view>

#include "runtime/base/error.h"

namespace troupe::runtime {

// Default: a range without addresses.
class NetworkRange {
 public:
  // Errors (kUsage) quote the text and say what is expected.
  static Result<NetworkRange> parse(std::string_view text);

  bool is_empty() const { return bits_ < 0; }
  // Whether the numeric address, IPv6 with or without brackets, lies in it; false for anything
  // else. An IPv4 address lies in IPv4 ranges only, and in "any".
  bool has(std::string_view address) const;
  // How many bits two such addresses begin with alike. 0: one is anything else, or of IPv4 where
  // the other is of IPv6.
  static int bits_alike(std::string_view address, std::string_view other);

 private:
  // IPv4 addresses stand in their place among those of IPv6.
  using Bytes = std::array<unsigned char, 16>;
  static bool read(std::string_view text, Bytes& bytes, bool& is_v4);

  Bytes bytes_{};
  int bits_ = -1;  // that count; -1: the range has no addresses
  bool holds_v4_ = false;
};

}  // namespace troupe::runtime
