#include "launch/meeting/placement.h"

#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "config/workers.h"
#include "launch/machine/this_host.h"
#include "runtime/transport/resolve.h"

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::Result;

// The first host has member 0 and so on. Tells of a host that is not this one, if there is any.
std::vector<std::uint32_t> members_here(const config::ClusterSection& cluster, std::string& away) {
  std::vector<std::uint32_t> here;
  std::uint32_t next = 0;
  for (const config::HostSection& host : cluster.hosts) {
    const bool is_mine = is_this_host(host.address);
    if (!is_mine && away.empty()) away = host.address;
    for (std::uint32_t i = 0; i < host.workers; ++i, ++next) {
      if (is_mine) here.push_back(next);
    }
  }
  return here;
}

// Where the address stands, or, if it is the default, the hosts that it does not suit.
config::Place place_of_listen(const config::Origins& origins) {
  for (const char* field : {"cluster.listen", "cluster.hosts"}) {
    const auto found = origins.find(field);
    if (found != origins.end() && !found->second.is_default()) return found->second;
  }
  return {};
}

// Any ports of an address of this machine that other hosts reach, as far as it can be told.
std::string where_members_listen(const config::ClusterSection& cluster,
                                 const runtime::ResolvedAddress& head) {
  if (!head.any) return runtime::endpoint_with_port(head, 0);
  for (const config::HostSection& host : cluster.hosts) {
    const auto resolved = resolve_host(host.address);
    const bool told = resolved.ok() && !resolved->loopback && !resolved->any;
    if (told && is_this_host(host.address)) return runtime::endpoint_with_port(*resolved, 0);
  }
  for (const std::string& number : interface_addresses()) {
    const auto resolved = resolve_host(number);
    if (resolved.ok()) return runtime::endpoint_with_port(*resolved, 0);
  }
  return {};
}

Error refused(const config::LoadedTopology& loaded, const std::string& why) {
  const std::string message =
      fmt::format("cluster.listen: {} {}", loaded.topology.cluster.listen, why);
  return {runtime::ErrorKind::kTopology,
          config::Problem{place_of_listen(loaded.origins), message}.text()};
}

// `away`: a host that is not this one.
Result<void> meet_on_network(const config::LoadedTopology& loaded, const std::string& away,
                             Placement& placement) {
  const config::ClusterSection& cluster = loaded.topology.cluster;
  const auto address = runtime::parse_address(cluster.listen);
  if (!address.ok()) return refused(loaded, "is no address: " + address.error().message);
  const auto resolved = runtime::resolve(*address);
  if (!resolved.ok()) {
    placement.unresolved = refused(loaded, "leads nowhere: " + resolved.error().message);
    return {};
  }
  if (resolved->loopback) {
    return refused(
        loaded,
        fmt::format("is reached from this machine only, and members are to run on {}; give an "
                    "address of this machine that others reach, with a port, and cluster.keys",
                    away));
  }
  if (address->port == 0) {
    return refused(
        loaded,
        "has no port of its own, so that other hosts cannot be told where to join; give a port "
        "other than 0");
  }
  placement.network = {cluster.listen, cluster.listen, where_members_listen(cluster, *resolved)};
  // An address that stands for all of this machine's cannot be dialed by itself.
  if (resolved->any) placement.network->dial = fmt::format("tcp://127.0.0.1:{}", address->port);
  return {};
}

// Why this machine cannot wait at an address that is not the loopback's, if so.
std::optional<Error> cannot_wait_here(const config::LoadedTopology& loaded,
                                      const runtime::Address& address,
                                      const runtime::ResolvedAddress& resolved) {
  if (!resolved.any && !is_this_host(address.host)) {
    return refused(loaded, "is no address of this machine");
  }
  if (!loaded.topology.cluster.keys) {
    return refused(loaded, "is reached from other machines, which needs cluster.keys");
  }
  return std::nullopt;
}

// All members are here. Others may still join later, where cluster.listen says.
Result<void> meet_here(const config::LoadedTopology& loaded, bool on_trial, Placement& placement) {
  const config::ClusterSection& cluster = loaded.topology.cluster;
  const auto address = runtime::parse_address(cluster.listen);
  if (!address.ok()) return refused(loaded, "is no address: " + address.error().message);
  const auto resolved = runtime::resolve(*address);
  if (resolved.ok() && resolved->loopback) {
    if (address->port == 0) return {};
    placement.network = {cluster.listen, cluster.listen, runtime::endpoint_with_port(*resolved, 0)};
    return {};
  }
  // The address is for members of other hosts. A trial (--workers) does without it where it is of
  // no use on this machine, and meets in the file system.
  const Result<void> met = meet_on_network(loaded, "", placement);
  if (!on_trial) return met;
  std::optional<Error> why = std::exchange(placement.unresolved, std::nullopt);
  if (!met.ok()) why = met.error();
  if (!why) why = cannot_wait_here(loaded, *address, *resolved);
  if (!why) return {};
  placement.network.reset();
  placement.unheeded = fmt::format(
      "{}; the members that --workers starts meet without it, and none joins them from elsewhere",
      why->message);
  return {};
}

// Nodes of pools have to reach the head, who may be on this machine too.
Result<void> meet_pools(const config::LoadedTopology& loaded, Placement& placement) {
  const config::ClusterSection& cluster = loaded.topology.cluster;
  const auto address = runtime::parse_address(cluster.listen);
  if (!address.ok()) return refused(loaded, "is no address: " + address.error().message);
  const auto resolved = runtime::resolve(*address);
  if (address->port == 0) {
    return refused(loaded,
                   "has no port of its own, so that nodes of cluster.pools cannot be told where to "
                   "join; give a port other than 0");
  }
  if (!resolved.ok() || !resolved->loopback) return meet_on_network(loaded, "", placement);
  placement.network = {cluster.listen, cluster.listen, runtime::endpoint_with_port(*resolved, 0)};
  return {};
}

}  // namespace

Result<Placement> place_run(const config::LoadedTopology& loaded,
                            std::optional<std::uint32_t> workers) {
  Placement placement;
  placement.members = config::workers_of(loaded.topology, workers);
  std::string away;
  if (workers) {
    placement.here.resize(placement.members);
    std::iota(placement.here.begin(), placement.here.end(), 0);
  } else {
    placement.here = members_here(loaded.topology.cluster, away);
  }
  if (placement.members > 0 && !loaded.topology.cluster.pools.empty()) {
    RETURN_IF_ERROR(meet_pools(loaded, placement));
  } else if (placement.here.size() < placement.members) {
    RETURN_IF_ERROR(meet_on_network(loaded, away, placement));
  } else if (placement.members > 0) {
    RETURN_IF_ERROR(meet_here(loaded, workers.has_value(), placement));
  }
  return placement;
}

}  // namespace troupe::launch
