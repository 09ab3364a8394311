#include "launch/machine/free_ports.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/descriptor.h"

namespace troupe::launch {

using runtime::ErrorKind;
using runtime::Result;

namespace {

Result<bool> is_free(std::uint16_t port) {
  const runtime::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open() && runtime::is_out_of_descriptors(errno)) {
    return runtime::out_of_descriptors(ErrorKind::kUsage, "ports");
  }
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

}  // namespace

Result<std::uint16_t> free_ports(std::uint32_t turn) {
  constexpr std::uint32_t kFirst = 20000, kCount = 12000, kTriples = kCount / 3;
  const std::uint32_t begin =
      (static_cast<std::uint32_t>(::getpid()) % kTriples + turn % kTriples) * 3;
  for (std::uint32_t i = 0; i < kCount; i += 3) {
    const auto port = static_cast<std::uint16_t>(kFirst + (begin + i) % kCount);
    ASSIGN_OR_RETURN(const bool free, are_free(port));
    if (free) return port;
  }
  return runtime::Error{ErrorKind::kUsage, "no three neighbouring ports from 20000 on are free"};
}

}  // namespace troupe::launch
