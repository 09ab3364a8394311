#pragma once

// Packets of one lane of one connection, cut into ZeroMQ messages and put together again.
//
// A packet is a kPacket message: its header, how each payload travels, and the payloads that fit a
// chunk and the message as frames of their own. Other payloads go through shared memory if there is
// room, and in chunks over all of the lane's stripes otherwise. Order over stripes is nobody's
// promise, so packets carry numbers and come out in their order.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/transport/shared_payload.h"
#include "runtime/transport/wire.h"
#include "runtime/transport/zmq_frames.h"
#include "runtime/transport/zmq_memory.h"

namespace troupe::runtime {

// What both ends of a lane have agreed on.
struct PacketLimits {
  std::size_t chunk_bytes = kLeastChunkBytes;
  int stripes = 1;
  std::size_t shared_from_bytes = 0;  // payloads from this size on try shared memory
  // Of payloads in one message; those above it travel in chunks, of which a small one is the only
  // one. Less than SIZE_MAX: over one stripe.
  std::size_t message_bytes = SIZE_MAX;
};

// The sending end of a lane. Every stripe is given packets and chunks in the order of their
// numbers. Packets of few bytes are all given to the first stripe. One thread.
class PacketCutter {
 public:
  // Takes one message for a stripe. The frames are read before it returns.
  using Out = std::function<void(int stripe, std::span<const Buffer> frames)>;

  explicit PacketCutter(const PacketLimits& limits) : limits_(limits) {}

  // `shared` may be null. CHECKs Packet's limits and kMostPayloadBytes.
  void cut(const Packet& packet, SharedSender* shared, const Out& out);

  std::uint64_t payloads_shared() const { return payloads_shared_; }

 private:
  // Of a packet with so many bytes in its message so far.
  PayloadEntry place(const Buffer& payload, std::size_t inline_bytes, SharedSender* shared);
  int next_stripe();

  const PacketLimits limits_;
  std::uint64_t packets_ = 0;
  std::uint64_t payloads_shared_ = 0;
  int turn_ = 0;
};

// The receiving end of a lane. Reads what a stranger may have written: whatever comes, memory in
// use stays below four times what has arrived and is still held, and kFreeBytes.
//
// What may come before its turn. An honest sender writes each stripe in the order of its packets,
// so over one stripe nothing comes early, and anything that does is refused. Over several, a stripe
// that stalls holds back what it carries while the others go on; how much goes on is bounded by the
// credits of the lane's links, which are not known here, but not what it is made of:
//   - a packet, a payload in chunks and an early chunk cost some hundred bytes of bookkeeping each.
//     The smallest packets of a node bring 40, of which 80,000 may wait, and of those that bring
//     110 any number. Links of small messages between nodes want fewer credits than that;
//   - a chunk that overtakes its announcement is full, or the one tail of a payload that has a full
//     chunk (1 MiB or more) besides;
//   - early chunks wait in the memory that they came in, at most as many as the largest payload
//     has;
//   - how far a number is ahead costs nothing by itself, so that only what no sum of credits allows
//     is refused.
class PacketAssembler {
 public:
  // What one thing that waits costs at most: a packet, a payload in chunks, or an early chunk.
  static constexpr std::size_t kEntryBytes = 320;
  // Of bookkeeping, whatever has arrived.
  static constexpr std::size_t kFreeBytes = std::size_t{16} << 20;
  // By so much the number of a packet is above that of the next one in order, at most.
  static constexpr std::uint64_t kMostAhead = std::uint64_t{1} << 24;

  // `memory`, for payloads that come in chunks, outlives the assembler. One thread uses both.
  PacketAssembler(const PacketLimits& limits, RecycledMemory& memory)
      : limits_(limits), memory_(memory) {}

  // One kPacket or kChunk message, whose frames are moved from; before the next one, next() is
  // called until it has nothing more. Returns what is wrong with the message, "" if nothing is;
  // after that the assembler is of no use any more. `shared` may be null.
  std::string take(std::span<Buffer> frames, const SharedReceiver* shared);

  // The next packet in order, once it is whole.
  std::optional<Packet> next();

 private:
  // A payload whose chunks are coming in. Its memory is taken with the first full one, and fresh
  // pages by the bytes as they arrive.
  struct Chunked {
    std::uint64_t bytes = 0;
    std::uint64_t missing = 0;  // chunks
    std::vector<bool> seen;     // full chunks; empty until the first
    Buffer buffer;
    Buffer tail;  // the last chunk, which may be of one byte: set aside until the others are there
  };
  struct EarlyChunk {
    ChunkFrame place;
    Buffer bytes;
  };
  struct Assembly {
    bool announced = false;
    Packet packet;
    std::map<std::uint32_t, Chunked> chunked;  // payloads that are not whole yet
    std::vector<EarlyChunk> early;             // came over another stripe before the announcement
    // What it brought and costs; see above.
    std::uint64_t bytes = 0;
    std::uint64_t entries = 0;
  };

  std::string take_packet(std::span<Buffer> frames, const SharedReceiver* shared);
  std::string take_payloads(Assembly& assembly, const PacketFrame& frame, std::span<Buffer> frames,
                            const SharedReceiver* shared);
  std::string take_chunk(std::span<Buffer> frames);
  std::string park(Assembly& assembly, const ChunkFrame& place, Buffer bytes);
  std::string store(Chunked& payload, std::uint64_t begin, const Buffer& bytes);
  std::string add_chunk(Assembly& assembly, const ChunkFrame& place, const Buffer& bytes);
  std::string add_full(Chunked& payload, std::uint32_t chunk, std::uint64_t count,
                       const Buffer& bytes);
  bool too_far(std::uint64_t number) const;
  void charge(Assembly& assembly, std::uint64_t bytes, std::uint64_t entries);
  std::string over_budget() const;

  const PacketLimits limits_;
  RecycledMemory& memory_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Assembly> assemblies_;  // by packet number, next_ and later ones
  // Of all assemblies.
  std::uint64_t bytes_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t early_bytes_ = 0;
};

}  // namespace troupe::runtime
