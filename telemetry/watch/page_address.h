#pragma once

// The address of a page, and the token it asks for: "http://host:8400/?token=x", "host:8400".

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace troupe::telemetry {

struct PageAddress {
  std::string host;  // without brackets
  std::uint16_t port = 80;
  std::string token;  // "": none

  // "127.0.0.1:8400", "[::1]:8400".
  std::string text() const;
};

// Whether people mean an address by this, and not a folder.
bool looks_like_address(std::string_view text);
// kUsage: this is no address, or one of an encrypted page (https), which is not read.
runtime::Result<PageAddress> parse_page_address(std::string_view text);

}  // namespace troupe::telemetry
