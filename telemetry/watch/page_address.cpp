#include "telemetry/watch/page_address.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/base/host_port.h"
#include "telemetry/page/web_request.h"

namespace troupe::telemetry {
namespace {

constexpr std::string_view kScheme = "http://";

// "host:8400", perhaps with "/" and what follows it.
bool begins_with_port(std::string_view text) {
  const std::string_view place = text.substr(0, text.find('/'));
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == place.size()) return false;
  const std::string_view port = place.substr(colon + 1);
  return std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string PageAddress::text() const { return runtime::HostPort{host, port}.text(); }

bool looks_like_address(std::string_view text) {
  return text.starts_with(kScheme) || text.starts_with("https://") || begins_with_port(text);
}

runtime::Result<PageAddress> parse_page_address(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return runtime::Error{runtime::ErrorKind::kUsage,
                          fmt::format("'{}' is no address of a page: {}; such as "
                                      "http://127.0.0.1:8400 or http://host:8400/?token=TOKEN",
                                      text, why)};
  };
  if (text.starts_with("https://")) {
    return wrong("encrypted pages are not read here; reach it by ssh -L");
  }
  const bool has_scheme = text.starts_with(kScheme);
  if (!has_scheme && !begins_with_port(text)) return wrong("it does not begin with http://");
  const std::string_view rest = has_scheme ? text.substr(kScheme.size()) : text;
  const std::size_t end = rest.find_first_of("/?#");
  std::string place(rest.substr(0, end));
  // The usual port is written behind a host without one, so that one parser serves for both. A
  // colon within brackets is of the address.
  const bool has_port = place.rfind(':') != std::string::npos && !place.ends_with(']');
  if (!has_port) place += ":80";
  const auto at = runtime::parse_host_port(place);
  if (!at.ok() || at->port == 0) return wrong("no host and port stand there");
  PageAddress address;
  address.host = at->host;
  address.port = at->port;
  for (const char unfit : address.host) {
    if (unfit <= ' ' || unfit > '~') return wrong("no host has such a name");
  }
  if (end == std::string_view::npos) return address;
  // A fragment is for browsers alone, and may hold a '?' of its own.
  std::string_view behind = rest.substr(end);
  behind = behind.substr(0, behind.find('#'));
  const std::size_t query = behind.find('?');
  if (query != std::string_view::npos) {
    address.token = value_of(behind.substr(query + 1), '&', "token");
  }
  return address;
}

}  // namespace troupe::telemetry
