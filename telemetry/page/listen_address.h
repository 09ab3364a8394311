#pragma once

// "127.0.0.1:8400": where a server listens.

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace troupe::telemetry {

struct ListenAddress {
  std::string host;        // "127.0.0.1", "::1", "localhost", "0.0.0.0"
  std::uint16_t port = 0;  // 0: any that is free
};

// kUsage: not HOST:PORT, or [HOST]:PORT for one with colons in it.
runtime::Result<ListenAddress> parse_listen_address(std::string_view text);
// "127.0.0.1:8400", "[::1]:8400".
std::string address_text(const ListenAddress& address);

}  // namespace troupe::telemetry
