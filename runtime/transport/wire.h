#pragma once

// Connections to other processes: packets go in at one end and come out at the other, in order per
// lane, or the connection is said to be lost. What the packets mean is the Gate's business
// (gate.h).
//
// A Wire is driven by one thread, which calls everything here but wake(). Implementations: ZmqWire
// (sockets), and the simulator's.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/lane.h"

namespace troupe::runtime {

// Grows with every change that an older build would misread. Both ends of a connection compare it
// before anything else (zmq_frames.h).
inline constexpr std::uint16_t kProtocolVersion = 13;

// What travels: a header of at most kMostHeaderBytes and payloads of any size, never copied where a
// transport can avoid it.
struct Packet {
  static constexpr std::size_t kMostHeaderBytes = std::size_t{1} << 20;
  static constexpr std::size_t kMostPayloads = 1024;

  Buffer header;
  std::vector<Buffer> payloads;

  std::size_t bytes() const {
    std::size_t sum = header.size();
    for (const Buffer& payload : payloads) sum += payload.size();
    return sum;
  }
};

// One connection, from connected() to disconnected(); numbers are never used again.
struct ConnectionId {
  std::uint64_t number = 0;
  auto operator<=>(const ConnectionId&) const = default;
};

// Who is at the other end, as far as the transport itself can tell.
struct ConnectionInfo {
  bool dialed = false;  // by this end
  // The address of the other end: "tcp://10.0.0.2:41234", or anything that is not tcp. For people,
  // and to tell which machine it is on.
  std::string address;
  std::string key;  // of the peer, proven by the transport (keys.h); "" where nothing is encrypted
  // The key has expired, and connects because it has done so before: good for nodes of the run to
  // come back with, and for nobody new.
  bool key_expired = false;
};

// What a Wire tells its driver, from within poll().
class WireEvents {
 public:
  virtual ~WireEvents() = default;
  // Packets may be sent from now on.
  virtual void connected(ConnectionId connection, const ConnectionInfo& info) = 0;
  // FIFO per connection and lane. Payload Buffers begin at a multiple of 8 bytes.
  virtual void arrived(ConnectionId connection, Lane lane, Packet packet) = 0;
  // A part of a packet that is not whole yet: the other end is alive, however long the rest takes.
  virtual void arriving(ConnectionId connection) { (void)connection; }
  // Also of a dial() that was refused for good (its key, its version). Nothing follows. What was
  // sent and has not arrived may be lost. `why` is kUsage when the ends cannot be meant to work
  // together (other releases) or the process lacks descriptors, kInternal when the library refuses
  // a socket for any other reason, and kLostPeers otherwise.
  virtual void disconnected(ConnectionId connection, const Error& why) = 0;
};

class Wire {
 public:
  virtual ~Wire() = default;

  // Where others can dial this end; "" when it does not listen.
  virtual std::string address() const = 0;

  // Begins to connect, and keeps trying until connected(), disconnected() or close(). Errors
  // (kUsage): an address that cannot be understood, or a name that does not resolve.
  virtual Result<ConnectionId> dial(const std::string& address) = 0;

  // Takes the packet, which leaves as soon as it can; never blocks. How much may be under way is
  // bounded by the caller's credits. Ignored for a connection that is not there any more.
  virtual void send(ConnectionId connection, Lane lane, Packet packet) = 0;

  // Sends what was taken and lets the connection go; no disconnected() follows. The other end sees
  // it go within moments.
  virtual void close(ConnectionId connection) = 0;

  // Tells `events` what has happened. Waits for something until `until`, or until wake().
  virtual void poll(WireEvents& events, TimePoint until) = 0;

  // Any thread: a poll() that waits, or the next one, returns.
  virtual void wake() = 0;
};

}  // namespace troupe::runtime
