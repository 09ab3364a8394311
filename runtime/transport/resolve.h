#pragma once

// Addresses as people write them, and what they stand for: "tcp://HOST:PORT", "HOST:PORT" (the
// same), "ipc://PATH". A host is a name, an IPv4 address or an IPv6 address in brackets; "*" is
// every IPv4 address of this machine, and makes sense for listening only.
//
// An address may end in "#KEY", the public key (see keys.h) that the other end must prove.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace troupe::runtime {

struct Address {
  enum class Kind : std::uint8_t { kTcp, kIpc };

  Kind kind = Kind::kTcp;
  std::string host;        // of kTcp, without brackets
  std::uint16_t port = 0;  // of kTcp; 0 is "any", for listening only
  std::string path;        // of kIpc
  std::string key;         // in digits; "" for none

  // As it would be written, without the key.
  std::string text() const;
};

// Errors (kUsage) quote the text and say what is expected.
Result<Address> parse_address(std::string_view text);

// The text without the key at its end: for messages, where it would drown what matters.
std::string_view without_key(std::string_view text);

// Whether the address has a host of which only the system's resolver knows where it is. An address
// that cannot be understood has none.
bool is_name(std::string_view address);

// Where other clients of the relay (runtime/relay/relay.h) find that client: "relay://7". No other
// process can dial it, and parse_address() does not know it.
std::string relay_address(std::uint32_t client);
std::optional<std::uint32_t> relay_client(std::string_view address);

// Where an address leads on this machine, now.
struct ResolvedAddress {
  std::string endpoint;   // numeric: "tcp://127.0.0.1:7000", "tcp://[::1]:7000", "ipc://PATH"
  std::string host;       // numeric, IPv6 in brackets; "" of ipc
  bool loopback = false;  // nothing sent to it leaves the machine: 127/8, ::1, ipc
  bool any = false;       // 0.0.0.0 or ::
};

// Asks the system's resolver for names other than localhost, which may take seconds; IPv4 is
// preferred where a name has both.
// Errors (kUsage): the name does not resolve.
Result<ResolvedAddress> resolve(const Address& address);

// The same host with another port. CHECKs that it is tcp.
std::string endpoint_with_port(const ResolvedAddress& address, std::uint16_t port);

}  // namespace troupe::runtime
