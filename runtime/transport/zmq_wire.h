#pragma once

// Connections to other processes over ZeroMQ: tcp between hosts, sockets of the file system within
// one, and payloads through shared memory where both ends see it. Between the same two ends nothing
// else changes but speed.
//
// A listener has two sockets: one for control at the address, and one for data and metrics at the
// next port (or PATH.data), so that a large payload never stands before an abort. A message of an
// unidentified connection is dropped and counted. A peer that breaks the protocol loses its
// connection.
//
// Keys: with a key pair everything is encrypted (CURVE) and a listener lets in only the keys of its
// allow-list. Without one, the wire neither listens on nor dials anything that leaves the machine.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/transport/keys.h"
#include "runtime/transport/resolve.h"
#include "runtime/transport/ucx_fabric.h"
#include "runtime/transport/wire.h"

namespace troupe::runtime {

struct ZmqWireOptions {
  // Where others can dial this end: "tcp://HOST:PORT" or "ipc://PATH". Port 0 takes any two free
  // ports that follow each other; another one takes it and the next one. "" does not listen.
  std::string listen;

  // This node's own keys. None: nothing is encrypted, and only loopback is possible.
  std::optional<KeyPair> keys;
  // Where the token was found that they are of, which admits for a while; for what is said of a
  // refusal. "" for keys of a node.
  std::string token_from;

  // The keys that a listener with keys lets in. Empty: none. A node that was let in may come again
  // after its key has expired; see AllowState.
  std::vector<AllowedKey> allowed;

  // Asked for that list at every new connection instead, on the thread that drives the wire.
  std::function<std::vector<AllowedKey>()> allowed_now;

  // The time of day, for keys that expire; same thread.
  std::function<std::chrono::sys_seconds()> wall_time = [] {
    return std::chrono::floor<std::chrono::seconds>(wall_now());
  };

  // The key (keys.h) that a dialed listener must prove, where the address names none ("#KEY" at its
  // end). "" with a loopback address: the connection is not encrypted.
  std::string server_key;

  // Where an address leads. Asked at the first dial of each address, and never again: a name that
  // has led somewhere leads there as long as the wire lives, whatever becomes of the resolver.
  std::function<Result<ResolvedAddress>(const Address&)> resolve = runtime::resolve;

  // Payloads from `shared_from_bytes` on go through memory that both processes see, where they do.
  // `shared_bytes` is the most of it per connection and direction, taken only as it is used; what
  // finds no room travels through the sockets.
  bool shared_memory = true;
  std::size_t shared_bytes = std::size_t{256} << 20;
  std::size_t shared_from_bytes = std::size_t{4} << 10;

  // Carries data and metrics from when it is open, for connections that begin then, instead of the
  // data socket and shared memory. Both ends must do so. Null: never. No other wire may have it.
  std::shared_ptr<UcxFabric> ucx;

  // How long what was taken is still sent after close() or the wire's end. The wire's destructor
  // takes no longer, much.
  Duration linger = std::chrono::seconds(2);

  // A connection that has not come about after this is tried again by the dialer and forgotten by
  // the listener; no step of it may take longer.
  Duration attach_within = std::chrono::seconds(10);

  // Required; outlives the wire.
  const Clock* clock = nullptr;

  // Refused peers, lost shared memory.
  Log log = Log::silent();
};

// Counts that cannot be seen from the outside. They only grow.
struct ZmqWireCounters {
  std::uint64_t dropped = 0;          // messages of unknown peers, or damaged
  std::uint64_t payloads_shared = 0;  // sent through shared memory
  std::uint64_t payloads_over_ucx = 0;
};

class ZmqWire final : public Wire {
 public:
  // Errors (kUsage): an address that cannot be understood or is in use, one that leaves the machine
  // without keys, keys or numbers out of their range, no descriptors left.
  static Result<std::unique_ptr<ZmqWire>> open(const ZmqWireOptions& options);
  // Closes every connection as close() does. Buffers that were handed on stay good.
  ~ZmqWire() override;

  // With the port that was taken; a listener on every address names this host. Without the key.
  std::string address() const override;
  // Errors besides: no descriptors are left. A connection that runs out of them later ends with
  // disconnected().
  Result<ConnectionId> dial(const std::string& address) override;
  void send(ConnectionId connection, Lane lane, Packet packet) override;
  void close(ConnectionId connection) override;
  // Returns after one wait, also if what ended it was nothing to tell.
  void poll(WireEvents& events, TimePoint until) override;
  void wake() override;

  ZmqWireCounters counters() const;

 private:
  struct Impl;
  explicit ZmqWire(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::runtime
