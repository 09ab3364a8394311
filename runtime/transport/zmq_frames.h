#pragma once

// Everything two ZmqWires say to each other, byte by byte. Numbers are little endian. Each message
// begins with the same eight bytes: the magic "TRPW", the wire's version (16 bits), the kind and a
// zero. Reading checks every bound before it is relied on and allocates no more than has arrived.
//
//   dialer                          listener
//   kAttach on control       ->                    who I am, and my shared memory
//                            <-     kWelcome       where my other lanes are, and mine
//   kAttach on every other   ->
//   kReady on control        ->                    whether I can see your shared memory
//                            <-     kOpen          packets may follow, both ways
//   kPacket, kChunk          <->
//   kBye on every strand     <->                   nothing follows on this one
//
// or kRefuse instead of any answer, and from an end whose peer broke a rule. A strand is one of the
// sockets of a connection: control, metrics, and as many of data as there are stripes.

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

namespace troupe::runtime {

// Grows with every change that an older release would misread.
inline constexpr std::uint16_t kWireVersion = 1;
// Of data sockets per connection; of one chunk; of one payload.
inline constexpr int kMostStripes = 16;
inline constexpr std::size_t kSmallChunkBytes = std::size_t{256} << 10;  // but of the data lane
inline constexpr std::size_t kLeastChunkBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMostChunkBytes = std::size_t{4} << 20;
inline constexpr std::uint64_t kMostPayloadBytes = std::uint64_t{16} << 30;

// Numbers are never given another meaning. After kWireVersion has grown, kRefuse alone must still
// be understood by both releases.
enum class FrameKind : std::uint8_t {
  kAttach = 1,
  kWelcome,
  kReady,
  kOpen,
  kRefuse,
  kBye,
  kPacket,
  kChunk,
};

// Names one connection among all of a listener's; drawn by the dialer. Who does not know it cannot
// speak for the connection.
using Token = std::array<std::byte, 16>;

// From the system's randomness: a token is a secret, which no seed may reproduce.
Token random_token();

// One socket of a connection. Its routing id on the listener's ROUTER is written by route().
struct StrandName {
  Token token{};
  Lane lane = Lane::kControl;
  std::uint8_t stripe = 0;  // of kData; 0 otherwise

  auto operator<=>(const StrandName&) const = default;
  std::string route() const;
  static std::optional<StrandName> from_route(std::span<const std::byte> route);
};

// Of every strand: it belongs to the connection of that token.
struct Attach {
  StrandName strand;
  std::uint8_t stripes = 1;       // of data, in all
  std::uint32_t chunk_bytes = 0;  // the most the dialer takes at once; the lesser of both holds
  SharedOffer offer;              // on control only; none when its bytes are 0
};

// What a kWelcome holds.
struct WireWelcome {
  std::uint16_t data_port = 0;  // of the host that was dialed; 0 with ipc, whose paths are derived
  std::uint16_t metrics_port = 0;
  std::uint32_t chunk_bytes = 0;
  bool sees_offer = false;  // payloads may come through the dialer's shared memory
  SharedOffer offer;
};

// What a kReady holds: whether payloads may come through the listener's shared memory.
struct Ready {
  bool sees_offer = false;
};

// How one payload of a packet travels.
struct PayloadEntry {
  enum class How : std::uint8_t {
    kFrame,   // as a frame behind the packet's own
    kChunks,  // as kChunk messages
    kShared,  // in the sender's shared memory
  };
  std::uint64_t bytes = 0;
  How how = How::kFrame;
  SharedPlace place;  // of kShared
};

// The first frame of a kPacket message. Behind it, a frame for each payload of How::kFrame.
struct PacketFrame {
  std::uint64_t number = 0;  // counts the lane's packets, from 0
  std::vector<PayloadEntry> payloads;
  Buffer header;  // shares the frame that was read
};

// The first of the two frames of a kChunk message; the other one is the bytes.
struct ChunkFrame {
  std::uint64_t number = 0;   // of the packet
  std::uint32_t payload = 0;  // position in it
  std::uint32_t chunk = 0;    // position in the payload, in units of the agreed chunk bytes
};

// The largest frame there is, but for a chunk: a header and as many entries as payloads can be.
inline constexpr std::size_t kMostPacketFrameBytes =
    (std::size_t{1} << 20) + 32 + std::size_t{1024} * 24;

// The kind of a message of this version, and nothing otherwise.
std::optional<FrameKind> kind_of(std::span<const std::byte> frame);
// The version of anything that begins with the magic.
std::optional<std::uint16_t> version_of(std::span<const std::byte> frame);

// One frame each.
Buffer write_attach(const Attach& attach);
Buffer write_welcome(const WireWelcome& welcome);
Buffer write_ready(const Ready& ready);
Buffer write_bare(FrameKind kind);          // kOpen, kBye
Buffer write_refuse(std::string_view why);  // cut to 1000 bytes
// CHECKs Packet's limits; header is copied behind the entries.
Buffer write_packet(std::uint64_t number, std::span<const PayloadEntry> payloads,
                    std::span<const std::byte> header);
Buffer write_chunk(const ChunkFrame& chunk);

// Nothing where a bound is broken. Lanes, stripes, counts and sizes are within their limits.
std::optional<Attach> read_attach(std::span<const std::byte> frame);
std::optional<WireWelcome> read_welcome(std::span<const std::byte> frame);
std::optional<Ready> read_ready(std::span<const std::byte> frame);
// For people, printable; of any version.
std::string read_refuse(std::span<const std::byte> frame);
std::optional<PacketFrame> read_packet(const Buffer& frame);
std::optional<ChunkFrame> read_chunk(std::span<const std::byte> frame);

}  // namespace troupe::runtime
