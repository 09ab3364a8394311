#include "runtime/transport/resolve.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <charconv>
#include <memory>

#include "runtime/base/host_port.h"
#include "runtime/transport/keys.h"

namespace troupe::runtime {
namespace {

constexpr std::string_view kRelayScheme = "relay://";
// A socket's name has 108 bytes with its end, and the name of the data socket has 5 more.
constexpr std::size_t kMostPathBytes = 99;

Error not_understood(std::string_view text, std::string_view why) {
  return Error{ErrorKind::kUsage,
               fmt::format("cannot understand the address '{}': {}; it should look like "
                           "tcp://HOST:PORT or ipc://PATH",
                           text, why)};
}

Error wrong_key(std::string_view text) {
  const std::size_t mark = text.find('#');
  return Error{ErrorKind::kUsage,
               fmt::format("cannot understand the address '{}#KEY': the key after # has {} "
                           "characters, {} hexadecimal digits are expected; give the whole key",
                           text.substr(0, mark), text.size() - mark - 1, kKeyDigits)};
}

Result<Address> parse_ipc(std::string_view text, std::string_view path) {
  if (path.empty()) return not_understood(text, "it has no path");
  if (path.find('\0') != std::string::npos)
    return not_understood(text, "its path holds a zero byte");
  if (path.size() > kMostPathBytes) {
    return not_understood(text, fmt::format("its path has {} bytes and sockets' paths have at "
                                            "most {}",
                                            path.size(), kMostPathBytes));
  }
  Address address;
  address.kind = Address::Kind::kIpc;
  address.path = path;
  return address;
}

Result<Address> parse_tcp(std::string_view text, std::string_view rest) {
  auto at = parse_host_port(rest);
  if (!at.ok()) return not_understood(text, at.error().message);
  Address address;
  address.host = std::move(at->host);
  address.port = at->port;
  return address;
}

// The numeric form of one of the resolver's answers.
ResolvedAddress numeric(const addrinfo& answer) {
  char text[INET6_ADDRSTRLEN] = "";
  ResolvedAddress resolved;
  if (answer.ai_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(answer.ai_addr);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
    resolved.loopback = (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
    resolved.any = v4->sin_addr.s_addr == 0;
  } else {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(answer.ai_addr);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
    resolved.loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    resolved.any = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
  }
  resolved.host = bracketed(text);
  return resolved;
}

// Hosts that need no resolver. That of a bare system may not know even "localhost", which RFC 6761
// lets nobody else define.
std::string number_of(const std::string& host) {
  if (host == "*") return "0.0.0.0";
  if (host == "localhost") return "127.0.0.1";
  return host;
}

}  // namespace

std::string Address::text() const {
  if (kind == Kind::kIpc) return fmt::format("ipc://{}", path);
  return "tcp://" + HostPort{host, port}.text();
}

// A key in Z85 may itself hold '#', so a key is told by its length.
std::string_view without_key(std::string_view text) {
  for (const std::size_t length : {kKeyDigits, kZ85KeyCharacters}) {
    if (text.size() <= length) continue;
    const std::size_t mark = text.size() - length - 1;
    const bool has_digits = length != kKeyDigits || !key_of_text(text.substr(mark + 1)).empty();
    if (text[mark] == '#' && has_digits) return text.substr(0, mark);
  }
  return text;
}

Result<Address> parse_address(std::string_view text) {
  constexpr std::string_view kTcp = "tcp://";
  constexpr std::string_view kIpc = "ipc://";
  std::string_view rest = without_key(text);
  const std::string_view written = rest == text ? "" : text.substr(rest.size() + 1);
  Result<Address> address = Error{};
  if (rest.starts_with(kIpc)) {
    address = parse_ipc(text, rest.substr(kIpc.size()));
  } else {
    if (rest.starts_with(kTcp)) rest.remove_prefix(kTcp.size());
    if (rest.find("://") != std::string_view::npos)
      return not_understood(text, "it is neither tcp nor ipc");
    // No host and no port holds one.
    if (rest.find('#') != std::string_view::npos) return wrong_key(text);
    address = parse_tcp(text, rest);
  }
  if (!address.ok() || written.empty()) return address;
  address->key = key_of_text(written);
  if (address->key.empty()) {
    return Error{ErrorKind::kUsage, fmt::format("cannot understand the address '{}#KEY': what "
                                                "follows # is not a key",
                                                without_key(text))};
  }
  return address;
}

bool is_name(std::string_view text) {
  const auto address = parse_address(text);
  if (!address.ok() || address->kind == Address::Kind::kIpc) return false;
  const std::string host = number_of(address->host);
  in6_addr number{};
  return ::inet_pton(AF_INET, host.c_str(), &number) != 1 &&
         ::inet_pton(AF_INET6, host.c_str(), &number) != 1;
}

// Hosts that are numbers go the same way: the system's resolver asks nobody about those.
Result<ResolvedAddress> resolve(const Address& address) {
  ResolvedAddress resolved;
  if (address.kind == Address::Kind::kIpc) {
    resolved.endpoint = address.text();
    resolved.loopback = true;
    return resolved;
  }
  const std::string host = number_of(address.host);
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* answers = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), nullptr, &wanted, &answers);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(answers, ::freeaddrinfo);
  if (failed != 0) {
    return Error{ErrorKind::kUsage,
                 fmt::format("the host '{}' of the address '{}' does not resolve ({}); check the "
                             "spelling, or give its IP address",
                             host, address.text(), ::gai_strerror(failed))};
  }
  const addrinfo* chosen = nullptr;
  for (const addrinfo* answer = answers; answer != nullptr; answer = answer->ai_next) {
    if (answer->ai_family != AF_INET && answer->ai_family != AF_INET6) continue;
    if (chosen == nullptr || (chosen->ai_family == AF_INET6 && answer->ai_family == AF_INET)) {
      chosen = answer;
    }
  }
  if (chosen == nullptr) {
    return Error{ErrorKind::kUsage,
                 fmt::format("the host '{}' has no IP address; give one in its place", host)};
  }
  resolved = numeric(*chosen);
  resolved.endpoint = endpoint_with_port(resolved, address.port);
  return resolved;
}

std::string endpoint_with_port(const ResolvedAddress& address, std::uint16_t port) {
  CHECK(!address.host.empty(), "only tcp has ports");
  return fmt::format("tcp://{}:{}", address.host, port);
}

std::string relay_address(std::uint32_t client) {
  return fmt::format("{}{}", kRelayScheme, client);
}

std::optional<std::uint32_t> relay_client(std::string_view address) {
  if (!address.starts_with(kRelayScheme)) return std::nullopt;
  address.remove_prefix(kRelayScheme.size());
  std::uint32_t client = 0;
  const auto end = address.data() + address.size();
  const auto parsed = std::from_chars(address.data(), end, client);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return client;
}

}  // namespace troupe::runtime
