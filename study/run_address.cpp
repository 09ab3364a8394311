#include "study/run_address.h"

#include <utility>

#include <fmt/format.h>

#include "launch/machine/claimed_ports.h"
#include "launch/machine/this_host.h"
#include "launch/meeting/join_lines.h"
#include "launch/meeting/key_folder.h"
#include "runtime/base/host_port.h"

namespace troupe::study {

runtime::Result<RunAddress> run_address(const config::ClusterSection& cluster, std::uint32_t turn) {
  ASSIGN_OR_RETURN(runtime::HostPort address, runtime::parse_host_port(cluster.listen));
  const auto resolved = launch::resolve_host(address.host);
  const bool is_every_host = resolved.ok() && resolved->any;
  if (!is_every_host && !launch::is_this_host(address.host)) {
    return runtime::Error{
        runtime::ErrorKind::kUsage,
        fmt::format("cluster.listen: {} is no address of this machine, at which the heads of all "
                    "trials listen; give one that is",
                    address.host)};
  }
  ASSIGN_OR_RETURN(launch::ClaimedPorts ports, launch::claim_ports(turn));
  address.port = ports.first;
  RunAddress made{address.text(), "", std::move(ports.claim)};
  made.dial = launch::addresses_to_dial(made.listen, made.listen, {}, launch::interface_addresses())
                  .front();
  if (!cluster.keys) return made;
  ASSIGN_OR_RETURN(const launch::KeyFolder keys, launch::read_key_folder(*cluster.keys));
  made.dial += "#" + keys.own.public_key;
  return made;
}

std::vector<std::string> key_words(const config::ClusterSection& cluster) {
  if (!cluster.keys) return {};
  return {"--key", *cluster.keys};
}

}  // namespace troupe::study
