#pragma once

// What two ZmqWires say to each other. A message begins with a prelude of eight bytes: the magic
// "TRPW", the version (16 bits, little endian), the kind and the lane. The fields of its struct
// follow (runtime/base/fields.h). Reading checks every bound and allocates no more than has
// arrived.
//
//   dialer                               listener
//   kAttach on both sockets   ->                   which connection the socket belongs to
//                             <-  kWelcome         packets may follow, both ways
//   kReady on control         ->                   whether it sees the listener's shared memory
//   kPacket, kChunk           <->
//   kBye on both sockets      <->                  nothing follows on this socket
//
// Where both ends offer UCX (ucx_fabric.h), kPacket and kChunk of data and metrics come over that,
// and a third kBye.
//
// An end sends kRefuse on control in place of an answer, and to a peer that broke a rule.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/lane.h"
#include "runtime/transport/shared_payload.h"
#include "runtime/transport/ucx_fabric.h"
#include "runtime/transport/wire.h"

namespace troupe::runtime {

// Payloads of more bytes are cut into chunks.
inline constexpr std::size_t kChunkBytes = std::size_t{2} << 20;
// The same on the control socket. The payloads of one control message have no more bytes together,
// so that a slow line shows a sign of life with each message.
inline constexpr std::size_t kControlChunkBytes = std::size_t{256} << 10;
inline constexpr std::uint64_t kMostPayloadBytes = std::uint64_t{16} << 30;

// A connection has two sockets. Metrics travel on the data socket, so that nothing but control ever
// stands before control.
enum class SocketId : std::uint8_t { kControl, kData };
inline constexpr std::size_t kSockets = 2;
constexpr SocketId socket_of(Lane lane) {
  return lane == Lane::kControl ? SocketId::kControl : SocketId::kData;
}

// No larger frame comes over the socket.
std::int64_t most_frame_bytes_of(SocketId id);
// The socket's path, from that of the control socket. Over tcp the data socket has the port after
// that of the control socket.
std::string path_of(const std::string& control, SocketId id);

// Numbers are never given another meaning. Releases of different versions understand each other's
// prelude and kRefuse, and nothing else.
enum class FrameKind : std::uint8_t {
  kAttach = 1,
  kWelcome,
  kReady,
  kRefuse = 5,
  kBye,
  kPacket,
  kChunk,
};

// Names one connection among all of a listener's. The dialer draws it from the system's randomness.
// It is a secret: a process that does not know it cannot speak for the connection.
using Token = SharedToken;
Token random_token();

// Names one socket of one connection. Its text is the routing id on the listener's ROUTER.
struct Route {
  Token token{};
  SocketId socket = SocketId::kControl;

  auto operator<=>(const Route&) const = default;
  std::string text() const;
  static std::optional<Route> from_text(std::span<const std::byte> text);
};

struct Attach {
  Route route;
  SharedOffer offer;  // on control only; none when its bytes are 0
  UcxOffer ucx{};     // the same; none when its address is empty
};

struct WireWelcome {
  bool sees_offer = false;  // payloads may come through the dialer's shared memory
  SharedOffer offer;
  UcxOffer ucx{};
};

struct Ready {
  bool sees_offer = false;  // payloads may come through the listener's shared memory
};

// How one payload of a packet travels.
struct PayloadEntry {
  enum class How : std::uint8_t {
    kFrame,   // as a frame behind the packet's own
    kChunks,  // as kChunk messages behind the packet's message, in order
    kShared,  // in the sender's shared memory
  };
  std::uint64_t bytes = 0;
  How how = How::kFrame;
  SharedPlace place;  // of kShared
};

// The first frame of a kPacket message. A frame for each payload of How::kFrame follows. A kChunk
// message has two frames: the prelude and the bytes.
struct PacketFrame {
  std::vector<PayloadEntry> payloads;
  Buffer header;  // shares the frame that was read
};

// The kind of a message of this version, and nothing otherwise.
std::optional<FrameKind> kind_of(std::span<const std::byte> frame);
// The lane of a message that has a kind.
Lane lane_of(std::span<const std::byte> frame);
// The version of anything that begins with the magic.
std::optional<std::uint16_t> version_of(std::span<const std::byte> frame);

// One frame each.
Buffer write_attach(const Attach& attach);
Buffer write_welcome(const WireWelcome& welcome);
Buffer write_ready(const Ready& ready);
Buffer write_bare(FrameKind kind, Lane lane = Lane::kControl);  // kBye, kChunk
Buffer write_refuse(std::string_view why);                      // cut to 1000 bytes
// CHECKs Packet's limits; the header is copied behind the entries.
Buffer write_packet(Lane lane, std::span<const PayloadEntry> payloads,
                    std::span<const std::byte> header);

// Nothing where a bound is broken.
std::optional<Attach> read_attach(std::span<const std::byte> frame);
std::optional<WireWelcome> read_welcome(std::span<const std::byte> frame);
std::optional<Ready> read_ready(std::span<const std::byte> frame);
// For people, printable; of any version.
std::string read_refuse(std::span<const std::byte> frame);
std::optional<PacketFrame> read_packet(const Buffer& frame);

}  // namespace troupe::runtime
