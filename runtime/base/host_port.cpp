#include "runtime/base/host_port.h"

#include <charconv>

#include <fmt/format.h>

namespace troupe::runtime {

std::string HostPort::text() const { return fmt::format("{}:{}", bracketed(host), port); }

Result<HostPort> parse_host_port(std::string_view text) {
  constexpr std::size_t kMostHostBytes = 253;  // of a name in the DNS
  const auto wrong = [](std::string why) { return Error{ErrorKind::kUsage, std::move(why)}; };
  // The last one, as an IPv6 address has colons of its own.
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("it has no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  HostPort parsed;
  const auto end = digits.data() + digits.size();
  const auto number = std::from_chars(digits.data(), end, parsed.port);
  if (number.ec != std::errc() || number.ptr != end) {
    return wrong(fmt::format("'{}' is not a port from 0 to 65535", digits));
  }
  if (host.starts_with('[') && host.ends_with(']') && host.size() > 2) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong("an IPv6 address stands in brackets");
  }
  if (host.empty()) return wrong("it has no host");
  if (host.size() > kMostHostBytes ||
      host.find_first_of(std::string_view("\0[]/ ", 5)) != std::string_view::npos) {
    return wrong("that is not the name of a host");
  }
  parsed.host = host;
  return parsed;
}

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : fmt::format("[{}]", host);
}

}  // namespace troupe::runtime
