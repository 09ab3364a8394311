#pragma once

// Packets of one lane of one connection, cut into ZeroMQ messages and put together again.
//
// A packet is a kPacket message: its header, how each payload travels, and the payloads that fit a
// chunk as frames of their own. Larger payloads go through shared memory if there is room, and in
// chunks over all of the lane's stripes otherwise. Order over stripes is nobody's promise, so
// packets carry numbers and come out in their order.

#include <cstdint>
#include <deque>
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

struct PacketLimits {
  std::size_t chunk_bytes = kLeastChunkBytes;
  int stripes = 1;
  std::size_t shared_from_bytes = 0;  // payloads from this size on try shared memory
};

// The sending end of a lane.
class PacketCutter {
 public:
  // Takes one message for a stripe. The frames are read before it returns.
  using Out = std::function<void(int stripe, std::span<const Buffer> frames)>;

  explicit PacketCutter(const PacketLimits& limits) : limits_(limits) {}

  // `shared` may be null. CHECKs Packet's limits and kMostPayloadBytes.
  void cut(const Packet& packet, SharedSender* shared, const Out& out);

  std::uint64_t payloads_shared() const { return payloads_shared_; }

 private:
  PayloadEntry place(const Buffer& payload, SharedSender* shared);
  int next_stripe();

  const PacketLimits limits_;
  std::uint64_t packets_ = 0;
  std::uint64_t payloads_shared_ = 0;
  int turn_ = 0;
};

// The receiving end of a lane. Reads what a stranger may have written: whatever comes, memory in
// use stays within a small multiple of what has arrived.
class PacketAssembler {
 public:
  explicit PacketAssembler(const PacketLimits& limits) : limits_(limits) {}

  // One kPacket or kChunk message, whose frames are moved from. Returns what is wrong with it, ""
  // if nothing is; after that the assembler is of no use any more. `shared` may be null.
  std::string take(std::span<Buffer> frames, const SharedReceiver* shared);

  // The next packet in order, once it is whole.
  std::optional<Packet> next();

 private:
  // A payload whose chunks are coming in. Its memory is taken with the first full one, and fresh
  // pages by the bytes as they arrive.
  struct Chunked {
    std::uint64_t bytes = 0;
    std::uint64_t missing = 0;  // chunks
    std::vector<bool> seen;     // by chunk; empty until the first
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
  };

  std::string take_packet(std::span<Buffer> frames, const SharedReceiver* shared);
  std::string take_chunk(std::span<Buffer> frames);
  std::string store(Chunked& payload, std::uint64_t begin, const Buffer& bytes);
  std::string add_chunk(Assembly& assembly, const ChunkFrame& place, const Buffer& bytes);

  const PacketLimits limits_;
  RecycledMemory memory_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Assembly> assemblies_;  // by packet number, next_ and later ones
};

}  // namespace troupe::runtime
