#pragma once

// The wire of a process that nobody can dial, which other such processes reach through a relay.

#include <memory>

#include "runtime/relay/relay_client.h"
#include "runtime/transport/wire.h"

namespace troupe::runtime {

// As the wire within, which listens at a socket of the file system; but its address is that of this
// process at the relay, and such addresses are dialed through it.
class RelayedWire final : public Wire {
 public:
  RelayedWire(std::unique_ptr<Wire> wire, std::unique_ptr<RelayClient> relay, std::uint32_t client)
      : relay_(std::move(relay)), wire_(std::move(wire)), client_(client) {}

  std::string address() const override;
  Result<ConnectionId> dial(const std::string& address) override;
  void send(ConnectionId connection, Lane lane, Packet packet) override {
    wire_->send(connection, lane, std::move(packet));
  }
  void close(ConnectionId connection) override { wire_->close(connection); }
  void poll(WireEvents& events, TimePoint until) override { wire_->poll(events, until); }
  void wake() override { wire_->wake(); }

 private:
  // What the wire has taken still leaves through the relay when it ends.
  const std::unique_ptr<RelayClient> relay_;
  const std::unique_ptr<Wire> wire_;
  const std::uint32_t client_;
};

}  // namespace troupe::runtime
