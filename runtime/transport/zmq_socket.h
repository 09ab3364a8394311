#pragma once

// ZeroMQ's sockets as the wire uses them: frames are Buffers, nothing blocks, nothing throws, and
// each socket comes with its monitor. The only file besides the keys' that sees the library.
//
// One thread, except where said.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/transport/keys.h"

namespace troupe::runtime {

// Messages that a socket is asked for before others get their turn.
inline constexpr int kFewMessages = 64;
// Enough to empty what stood before a connection's end; a flood does not hold the driver for ever.
inline constexpr int kManyMessages = 100'000;

// The library's I/O threads. Outlives every socket; its destructor waits for what sockets still
// have to send, as long as their linger allows.
class ZmqContext {
 public:
  // Errors (kUsage): the process has too few descriptors left for the threads. It is asked for
  // beforehand, since the library ends the process when they find none.
  static Result<std::unique_ptr<ZmqContext>> open(int io_threads);
  ~ZmqContext();
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;

 private:
  friend class ZmqSocket;
  struct Impl;
  explicit ZmqContext(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// As runtime/base/descriptor.h has it, for connections.
Error out_of_descriptors();

struct ZmqSocketOptions {
  enum class Role : std::uint8_t { kRouter, kDealer, kReply };

  Role role = Role::kRouter;
  std::string route;                  // of kDealer: its routing id
  std::int64_t most_frame_bytes = 0;  // a larger frame from the peer ends the connection
  Duration linger{0};                 // how long close() lets the library go on sending
  std::optional<KeyPair> keys;        // CURVE with these
  std::string server_key;             // of kDealer with keys: what the listener must prove
  // How long the other end may take for the handshake of ZeroMQ and CURVE, before kFailed.
  Duration handshake_within = std::chrono::seconds(10);
};

// What a monitor tells of one connection of its socket.
struct ZmqEvent {
  enum class What : std::uint8_t {
    kReady,           // the handshake of ZeroMQ and CURVE is done
    kRefused,         // the listener does not let this key in
    kOtherMechanism,  // one end encrypts and the other one does not
    kFailed,          // the handshake broke off, or was not done in time: the library tells neither
    kNotReached,      // nobody listens there, as yet, or no descriptor is left to ask
    kDisconnected,
  };
  What what = What::kDisconnected;
  int descriptor = -1;  // of kDisconnected
};

// Where a message came from.
struct ZmqOrigin {
  int descriptor = -1;  // of its connection, -1 if unknown
  std::string key;      // proven; "" without CURVE
  bool key_expired = false;
  std::string address;  // of the peer, for people

  // What the connection of such a peer has to be called, for origin() to find both.
  static std::string user_id(const std::string& key, bool expired);
};

class ZmqSocket {
 public:
  // No message of ours has more frames; see receive().
  static constexpr std::size_t kMostFrames = 1100;

  // Monitored, unless it is kReply. Errors: out_of_descriptors(); kInternal for what the library
  // refuses besides.
  static Result<std::unique_ptr<ZmqSocket>> open(ZmqContext& context,
                                                 const ZmqSocketOptions& options);
  // Lets the library send what was taken, for at most the linger.
  ~ZmqSocket();
  ZmqSocket(const ZmqSocket&) = delete;
  ZmqSocket& operator=(const ZmqSocket&) = delete;

  // The endpoint really bound, with its port. Errors (kUsage) name the endpoint and the cause.
  Result<std::string> bind(const std::string& endpoint);
  // Tries to connect, once; the monitor tells how it went. Errors (kUsage) as above.
  Result<void> connect(const std::string& endpoint);
  // Nothing of what was taken and has not left is sent after all.
  void forget();

  // One message. Frames of some size are sent from where they are; the library holds the Buffer
  // until its I/O thread is done with it. `route` only at kRouter. False: there is no such peer any
  // more, and nothing was taken.
  bool send(std::string_view route, std::span<const Buffer> frames);

  // Takes one message; false when there is none. At kRouter the first frame is the peer's route.
  // Frames of some size are handed on without a copy; all begin at a multiple of 8 bytes. Nothing
  // is left of a message of more than kMostFrames, but for the route at kRouter, behind which there
  // is always something else.
  bool receive(std::vector<Buffer>& frames);
  // The origin of the message taken last.
  ZmqOrigin origin() const;

  // In the order they happened; false when there is none. A connection's end stands here before the
  // first message of another one with the same descriptor.
  bool next_event(ZmqEvent& event);

  // Whether there may be a message, or an event: false until a wait_for_any() finds one or the
  // other, from when receive() or next_event() found none. A look costs a system call, so those who
  // are not draining ask first.
  bool readable() const { return readable_; }
  bool has_events() const { return has_events_; }

 private:
  friend void wait_for_any(std::span<ZmqSocket* const> sockets,
                           std::initializer_list<int> descriptors, long timeout_ms);
  bool check_readable();

  struct Impl;
  explicit ZmqSocket(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
  bool readable_ = true;
  bool has_events_ = true;
};

// Waits until a socket or its monitor may be read, or one of the descriptors (-1: none), or the
// time is over. timeout_ms < 0: for ever. Returns at once when some socket was not read to its end.
void wait_for_any(std::span<ZmqSocket* const> sockets, std::initializer_list<int> descriptors,
                  long timeout_ms);

}  // namespace troupe::runtime
