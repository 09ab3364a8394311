#include "launch/meeting/join_lines.h"

#include <utility>

#include <fmt/format.h>

#include "config/plan.h"
#include "launch/machine/this_host.h"
#include "launch/meeting/key_folder.h"
#include "runtime/base/host_name.h"
#include "runtime/transport/resolve.h"

namespace troupe::launch {
namespace {

// The host of each member, in their order.
std::vector<std::string> hosts_of_members(const config::ClusterSection& cluster,
                                          std::uint32_t members) {
  std::vector<std::string> hosts;
  for (const config::HostSection& host : cluster.hosts) {
    hosts.insert(hosts.end(), host.workers, host.address);
  }
  // --workers may ask for more than the topology's hosts have.
  hosts.resize(members, "any host");
  return hosts;
}

bool is_ipv6(const std::string& number) { return number.find(':') != std::string::npos; }

// A name that leads to loopback here may still lead here from elsewhere: many systems have their
// own name in /etc/hosts so. `both`: IPv6 is listened to as well.
bool is_reachable_name(const std::string& host, bool both) {
  if (!is_this_host(host)) return false;
  if (host == runtime::host_name()) return true;
  const auto resolved = resolve_host(host);
  return resolved.ok() && !resolved->loopback && (both || !is_ipv6(resolved->host));
}

std::string address_of(std::string host, std::uint16_t port) {
  runtime::Address address;
  address.host = std::move(host);
  address.port = port;
  return address.text();
}

// Quoted: some shells take brackets and # for more than they are.
std::string quoted(const std::string& address, const std::string& public_key) {
  return public_key.empty() ? fmt::format("'{}'", address)
                            : fmt::format("'{}#{}'", address, public_key);
}

// A line for each address but the first.
std::string further(const std::vector<std::string>& addresses, const std::string& public_key) {
  std::string lines;
  for (std::size_t i = 1; i < addresses.size(); ++i) {
    lines +=
        fmt::format("\n  or, where that is not reached, at {}", quoted(addresses[i], public_key));
  }
  return lines;
}

bool stays_on_this_machine(const std::string& listen) {
  const auto address = runtime::parse_address(listen);
  if (!address.ok()) return false;
  const auto resolved = runtime::resolve(*address);
  return resolved.ok() && resolved->loopback;
}

}  // namespace

std::vector<std::string> addresses_to_dial(const std::string& listen, const std::string& bound,
                                           const std::vector<config::HostSection>& hosts,
                                           const std::vector<std::string>& interfaces) {
  const auto asked = runtime::parse_address(listen);
  const auto actual = runtime::parse_address(bound);
  if (!asked.ok() || !actual.ok()) return {bound};
  const auto resolved = runtime::resolve(*asked);
  if (!resolved.ok() || !resolved->any) return {bound};
  // "*" and 0.0.0.0 are not reached over IPv6.
  const bool both = is_ipv6(asked->host);
  for (const config::HostSection& host : hosts) {
    if (is_reachable_name(host.address, both)) return {address_of(host.address, actual->port)};
  }
  std::vector<std::string> addresses;
  for (const std::string& number : interfaces) {
    if (both || !is_ipv6(number)) addresses.push_back(address_of(number, actual->port));
  }
  if (addresses.empty()) addresses.push_back(bound);
  return addresses;
}

std::string join_lines(const config::ClusterSection& cluster, std::uint32_t members,
                       const std::set<std::string>& here, const std::vector<std::string>& addresses,
                       const std::string& public_key) {
  const std::string key = public_key.empty() ? "" : " --key DIR";
  const std::vector<std::string> hosts = hosts_of_members(cluster, members);
  std::string lines;
  for (std::uint32_t i = 0; i < members; ++i) {
    const std::string member = config::member_name(i);
    if (here.contains(member)) continue;
    lines += fmt::format("\n  on {}: troupe join {}{} --node {}", hosts[i],
                         quoted(addresses.front(), public_key), key, member);
  }
  if (lines.empty()) return lines;
  return lines + further(addresses, public_key) +
         "\n  and where the data is not, with --data remote";
}

std::string newcomer_lines(const std::vector<std::string>& addresses, const std::string& public_key,
                           bool this_machine) {
  return fmt::format("others may join{}: troupe join {}{}{}",
                     this_machine ? " on this machine" : "", quoted(addresses.front(), public_key),
                     public_key.empty() ? "" : " --key DIR", further(addresses, public_key));
}

void tell_members(const config::ClusterSection& cluster, std::uint32_t members,
                  const std::vector<std::string>& members_here, const std::string& listen,
                  const runtime::Wire& wire, const runtime::Log& log) {
  const std::set<std::string> here(members_here.begin(), members_here.end());
  bool awaits_others = false;
  for (std::uint32_t i = 0; i < members; ++i) {
    awaits_others = awaits_others || !here.contains(config::member_name(i));
  }
  // Without keys nothing is listened to beyond this machine.
  if (!awaits_others && (cluster.joiners == 0 || !cluster.keys)) return;
  std::string key;
  if (cluster.keys) {
    const auto keys = read_key_folder(*cluster.keys);
    if (keys.ok()) key = keys->own.public_key;
  }
  const auto addresses =
      addresses_to_dial(listen, wire.address(), cluster.hosts, interface_addresses());
  if (!awaits_others) {
    log.info(newcomer_lines(addresses, key, stays_on_this_machine(listen)));
    return;
  }
  log.info("waiting for members of other hosts; type there:" +
           join_lines(cluster, members, here, addresses, key));
}

}  // namespace troupe::launch
