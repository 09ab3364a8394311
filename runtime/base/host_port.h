#pragma once

// "127.0.0.1:8400": a host and a port, as people and URLs write them.

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace troupe::runtime {

struct HostPort {
  std::string host;        // without brackets: "127.0.0.1", "::1", "localhost", "*"
  std::uint16_t port = 0;  // 0: any that is free, where one listens

  // "127.0.0.1:8400", "[::1]:8400".
  std::string text() const;
};

// HOST:PORT, or [HOST]:PORT for a host with colons in it. Errors (kUsage) say what is wrong; the
// caller quotes the text.
Result<HostPort> parse_host_port(std::string_view text);

// As a URL has it: a host with colons in it stands in brackets.
std::string bracketed(const std::string& host);

}  // namespace troupe::runtime
