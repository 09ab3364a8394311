#include "launch/machine/this_host.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/host_name.h"

namespace troupe::launch {
namespace {

using runtime::Descriptor;

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// A numeric host, IPv6 with or without brackets, as the system takes it for datagrams. Null: it is
// none, and `failed` says why.
AddressList numeric_address(std::string host, const char* port, int& failed) {
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  failed = ::getaddrinfo(host.c_str(), port, &hints, &found);
  return {failed == 0 ? found : nullptr, ::freeaddrinfo};
}

// Only addresses of this machine can be bound.
bool can_bind(const std::string& numeric_host) {
  int failed = 0;
  const AddressList found = numeric_address(numeric_host, nullptr, failed);
  if (found == nullptr) return false;
  const Descriptor probe(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return probe.is_open() && ::bind(probe.number(), found->ai_addr, found->ai_addrlen) == 0;
}

constexpr std::uint32_t kLinkLocalIpv4 = 169U << 8 | 254U;

// As a number, if it can be reached from elsewhere; else "".
std::string reachable_number(const ifaddrs& interface) {
  const sockaddr* address = interface.ifa_addr;
  // Not those without a cable, such as a bridge that nothing is attached to.
  constexpr unsigned kWorking = IFF_UP | IFF_RUNNING;
  if (address == nullptr || (interface.ifa_flags & kWorking) != kWorking) return {};
  if ((interface.ifa_flags & IFF_LOOPBACK) != 0) return {};
  socklen_t size = 0;
  if (address->sa_family == AF_INET) {
    size = sizeof(sockaddr_in);
    const auto* four = reinterpret_cast<const sockaddr_in*>(address);
    if (ntohl(four->sin_addr.s_addr) >> 16 == kLinkLocalIpv4) return {};
  }
  if (address->sa_family == AF_INET6) {
    size = sizeof(sockaddr_in6);
    const auto* six = reinterpret_cast<const sockaddr_in6*>(address);
    if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)) return {};
  }
  if (size == 0) return {};
  std::array<char, NI_MAXHOST> number{};
  const int failed =
      ::getnameinfo(address, size, number.data(), number.size(), nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? number.data() : std::string();
}

}  // namespace

std::vector<std::string> interface_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, ::freeifaddrs);
  std::vector<std::string> numbers;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    std::string number = reachable_number(*each);
    if (!number.empty()) numbers.push_back(std::move(number));
  }
  std::stable_partition(numbers.begin(), numbers.end(), [](const std::string& number) {
    return number.find(':') == std::string::npos;
  });
  return numbers;
}

runtime::Result<std::string> address_towards(const std::string& number) {
  constexpr const char* kAnyPort = "9";
  int failed = 0;
  const AddressList found = numeric_address(number, kAnyPort, failed);
  if (found == nullptr) {
    return runtime::Error{runtime::ErrorKind::kLostPeers,
                          fmt::format("'{}' is no address: {}", number, ::gai_strerror(failed))};
  }
  const Descriptor probe(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  std::array<char, NI_MAXHOST> text{};
  // Connecting a socket of datagrams only asks the routing table.
  const bool known = probe.is_open() &&
                     ::connect(probe.number(), found->ai_addr, found->ai_addrlen) == 0 &&
                     ::getsockname(probe.number(), reinterpret_cast<sockaddr*>(&local), &size) == 0;
  if (known) {
    failed = ::getnameinfo(reinterpret_cast<const sockaddr*>(&local), size, text.data(),
                           text.size(), nullptr, 0, NI_NUMERICHOST);
    if (failed == 0) return std::string(text.data());
  }
  return runtime::Error{
      runtime::ErrorKind::kLostPeers,
      fmt::format("there is no way from this machine to {}: {}; is its network up?", number,
                  known ? ::gai_strerror(failed) : std::generic_category().message(errno))};
}

runtime::Result<runtime::ResolvedAddress> resolve_host(const std::string& host) {
  runtime::Address address;
  address.host = host;
  return runtime::resolve(address);
}

bool is_this_host(const std::string& host) {
  if (host == runtime::host_name()) return true;
  const auto resolved = resolve_host(host);
  if (!resolved.ok() || resolved->any) return false;
  return resolved->loopback || can_bind(resolved->host);
}

std::string machine_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code failed;
  const auto network = std::filesystem::read_symlink("/proc/self/ns/net", failed);
  return boot.empty() || failed ? std::string() : boot + " " + network.string();
}

double host_load() {
  const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  std::ifstream file("/proc/loadavg");
  return runnable_threads(file) / static_cast<double>(std::max(processors, 1L));
}

// The fourth word is "RUNNABLE/ALL".
double runnable_threads(std::istream& load_averages) {
  std::string average;
  double runnable = 0.0;
  for (int i = 0; i < 3; ++i) load_averages >> average;
  return load_averages >> runnable ? runnable : 0.0;
}

}  // namespace troupe::launch
