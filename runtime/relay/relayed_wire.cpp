#include "runtime/relay/relayed_wire.h"

#include "runtime/transport/resolve.h"

namespace troupe::runtime {

std::string RelayedWire::address() const { return relay_address(client_); }

Result<ConnectionId> RelayedWire::dial(const std::string& address) {
  const std::string_view place = without_key(address);
  const auto client = relay_client(place);
  if (!client) return wire_->dial(address);
  ASSIGN_OR_RETURN(std::string door, relay_->door_to(*client));
  door += address.substr(place.size());
  return wire_->dial(door);
}

}  // namespace troupe::runtime
