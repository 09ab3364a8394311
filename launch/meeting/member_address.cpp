#include "launch/meeting/member_address.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "launch/machine/this_host.h"
#include "runtime/base/secret.h"
#include "runtime/transport/resolve.h"

namespace troupe::launch {
namespace {

using runtime::Address;
using runtime::Error;
using runtime::ErrorKind;
using runtime::ResolvedAddress;
using runtime::Result;

// Containers may share the folder and not their numbers of processes.
Result<std::string> socket_beside(const std::string& head_path) {
  const std::filesystem::path folder = std::filesystem::absolute(head_path).parent_path();
  const std::string name =
      fmt::format("member-{}-{:04x}", ::getpid(), runtime::secret_number() & 0xffffU);
  const std::string address = fmt::format("ipc://{}", (folder / name).string());
  if (const auto parsed = runtime::parse_address(address); !parsed.ok()) {
    return Error{ErrorKind::kUsage,
                 fmt::format("{}; name another one with --listen", parsed.error().message)};
  }
  return address;
}

// Others do not stand in this process's folder.
Result<std::string> socket_at(const Address& wanted) {
  std::error_code failed;
  const auto path = std::filesystem::absolute(wanted.path, failed);
  if (failed) {
    return Error{ErrorKind::kUsage, fmt::format("--listen {}: {}; give a path from the root",
                                                wanted.text(), failed.message())};
  }
  const std::string address = fmt::format("ipc://{}", path.string());
  RETURN_IF_ERROR(runtime::parse_address(address));
  return address;
}

// The local end of the way to the head.
Result<ResolvedAddress> way_to(const ResolvedAddress& head) {
  if (head.loopback) return head;
  ASSIGN_OR_RETURN(const std::string own, address_towards(head.host));
  return resolve_host(own);
}

}  // namespace

Result<std::string> listen_address(const std::string& head, const std::string& wanted,
                                   bool has_keys) {
  ASSIGN_OR_RETURN(const Address head_address, runtime::parse_address(head));
  Address own;  // any port
  ResolvedAddress place;
  if (wanted == kNoListener) return std::string();
  if (!wanted.empty()) {
    ASSIGN_OR_RETURN(own, runtime::parse_address(wanted));
    if (own.kind == Address::Kind::kIpc) return socket_at(own);
    ASSIGN_OR_RETURN(place, runtime::resolve(own));
    if (!place.any) return runtime::endpoint_with_port(place, own.port);
  }
  const bool in_files = head_address.kind == Address::Kind::kIpc;
  if (in_files && wanted.empty()) return socket_beside(head_address.path);
  ResolvedAddress head_place;
  if (!in_files) {
    ASSIGN_OR_RETURN(head_place, runtime::resolve(head_address));
  }
  if (!wanted.empty() && (in_files || head_place.loopback)) {
    return Error{ErrorKind::kUsage,
                 fmt::format("--listen {}: the head is at {}, which does not tell by which of its "
                             "addresses others reach this machine; name one",
                             wanted, head_address.text())};
  }
  if (wanted.empty() && !has_keys && !head_place.loopback) return std::string();
  ASSIGN_OR_RETURN(place, way_to(head_place));
  return runtime::endpoint_with_port(place, own.port);
}

Result<std::string> await_listen_address(const std::function<Result<std::string>()>& find,
                                         runtime::Duration within, const runtime::Clock& clock,
                                         const std::function<void(const Error& why)>& pause) {
  const runtime::TimePoint deadline = clock.now() + within;
  while (true) {
    Result<std::string> address = find();
    const bool may_come = !address.ok() && address.error().kind == ErrorKind::kLostPeers;
    if (!may_come || clock.now() >= deadline) return address;
    pause(address.error());
  }
}

}  // namespace troupe::launch
