#pragma once

// The end of a relay in a member that nobody can dial: it attends, so that other clients of the
// relay reach this process's own listener, and it opens doors by which this process reaches theirs.
// Both are sockets of the file system, and all connections that leave the machine are made from
// here.

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/relay/relay_frames.h"
#include "runtime/transport/wire.h"

namespace troupe::runtime {

struct RelayClientOptions {
  // The relay's address: a number, IPv6 with or without brackets.
  std::string host;
  std::uint16_t port = 0;
  // The number by which the relay knows this process.
  std::uint32_t client = 0;
  RelayToken token{};
  // Path of this process's own listener, as ZmqWireOptions::listen has it behind "ipc://": the
  // other lanes' sockets are beside it.
  std::string listener;
  // A folder that only this user can enter, where doors are made.
  std::string folder;
  // From one sign of life to the next, and how long the relay may be silent.
  Duration sign_every = std::chrono::seconds(5);
  Duration silent_within = std::chrono::seconds(15);
  Log log = Log::silent();
};

// Has a thread of its own. While the relay cannot be reached, it is tried again.
class RelayClient {
 public:
  // Errors (kUsage): the address cannot be understood, or descriptors are lacking.
  static Result<std::unique_ptr<RelayClient>> open(const RelayClientOptions& options);
  // Ends every connection through the relay.
  ~RelayClient();

  // Any thread. Whether the relay has let it in, and it is reached there, waiting for that.
  bool attends(Duration within) const;

  // The address at which this process dials that client: "ipc://PATH". Words said there wait while
  // the client does not answer. Errors (kUsage): no door can be made. One thread.
  Result<std::string> door_to(std::uint32_t client);

 private:
  struct Impl;
  explicit RelayClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The wire of a process that nobody can dial, which other such processes reach through a relay.
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
  // It outlives the wire, whose last packets still leave through the relay.
  const std::unique_ptr<RelayClient> relay_;
  const std::unique_ptr<Wire> wire_;
  const std::uint32_t client_;
};

}  // namespace troupe::runtime
