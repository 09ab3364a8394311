#include "telemetry/page/listen_address.h"

#include <charconv>

#include <fmt/format.h>

namespace troupe::telemetry {

runtime::Result<ListenAddress> parse_listen_address(std::string_view text) {
  const runtime::Error wrong{
      runtime::ErrorKind::kUsage,
      fmt::format("'{}' is no address to listen at; such as 127.0.0.1:8400 or [::1]:8400", text)};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!bracketed && host.find(':') != std::string_view::npos)) return wrong;
  ListenAddress address;
  address.host = host;
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (parsed.ec != std::errc{} || parsed.ptr != port.data() + port.size()) return wrong;
  return address;
}

std::string address_text(const ListenAddress& address) {
  const bool colons = address.host.find(':') != std::string::npos;
  return colons ? fmt::format("[{}]:{}", address.host, address.port)
                : fmt::format("{}:{}", address.host, address.port);
}

}  // namespace troupe::telemetry
