#include "launch/this_host.h"

#include <netdb.h>
#include <sys/socket.h>

#include "launch/descriptor.h"
#include "launch/nodes_file.h"
#include "runtime/transport/resolve.h"

namespace troupe::launch {
namespace {

// Only addresses of this machine can be bound.
bool can_bind(const std::string& numeric_host) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(numeric_host.c_str(), nullptr, &hints, &found) != 0) return false;
  const Descriptor probe(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const bool bound =
      probe.is_open() && ::bind(probe.number(), found->ai_addr, found->ai_addrlen) == 0;
  ::freeaddrinfo(found);
  return bound;
}

}  // namespace

bool is_this_host(const std::string& host) {
  if (host == host_name()) return true;
  runtime::Address address;
  address.host = host;
  const auto resolved = runtime::resolve(address);
  if (!resolved.ok() || resolved->any) return false;
  if (resolved->loopback) return true;
  std::string number = resolved->host;
  if (number.starts_with('[')) number = number.substr(1, number.size() - 2);
  return can_bind(number);
}

}  // namespace troupe::launch
