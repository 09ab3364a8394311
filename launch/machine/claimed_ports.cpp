#include "launch/machine/claimed_ports.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace troupe::launch {

using runtime::Descriptor;
using runtime::ErrorKind;
using runtime::Result;

namespace {

Result<Descriptor> open_socket(int domain) {
  Descriptor socket(::socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open() && runtime::is_out_of_descriptors(errno)) {
    return runtime::out_of_descriptors(ErrorKind::kUsage, "ports");
  }
  return socket;
}

Result<bool> is_free(std::uint16_t port) {
  ASSIGN_OR_RETURN(const Descriptor socket, open_socket(AF_INET));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_ANY);
  at.sin_port = htons(port);
  return ::bind(socket.number(), reinterpret_cast<sockaddr*>(&at), sizeof(at)) == 0;
}

// With the two that follow.
Result<bool> are_free(std::uint16_t port) {
  for (int i = 0; i < 3; ++i) {
    ASSIGN_OR_RETURN(const bool free, is_free(static_cast<std::uint16_t>(port + i)));
    if (!free) return false;
  }
  return true;
}

// Gives the socket a name that one of the machine has at a time, and that goes with it. True:
// another one has it. Where such names are forbidden nothing is claimed.
bool is_claimed(std::uint16_t port, const Descriptor& socket) {
  const std::string name = fmt::format("troupe ports {}", port);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  name.copy(&at.sun_path[1], name.size());  // behind a 0: not in the file system
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return ::bind(socket.number(), reinterpret_cast<sockaddr*>(&at), bytes) != 0 &&
         errno == EADDRINUSE;
}

}  // namespace

Result<ClaimedPorts> claim_ports(std::uint32_t turn) {
  constexpr std::uint32_t kFirst = 20000, kCount = 12000, kTriples = kCount / 3;
  const std::uint32_t begin =
      (static_cast<std::uint32_t>(::getpid()) % kTriples + turn % kTriples) * 3;
  for (std::uint32_t i = 0; i < kCount; i += 3) {
    const auto port = static_cast<std::uint16_t>(kFirst + (begin + i) % kCount);
    // Claimed first: one who looks before may be told so by a socket that another looks with.
    ASSIGN_OR_RETURN(Descriptor claim, open_socket(AF_UNIX));
    if (is_claimed(port, claim)) continue;
    ASSIGN_OR_RETURN(const bool free, are_free(port));
    if (free) return ClaimedPorts{port, std::move(claim)};
  }
  return runtime::Error{ErrorKind::kUsage, "no three neighbouring ports from 20000 on are free"};
}

}  // namespace troupe::launch
