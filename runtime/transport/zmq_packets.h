#pragma once

// Packets of one lane of one connection, cut into messages of frames and put together again.
//
// A packet is a kPacket message: its header, how each payload travels, and as frames the payloads
// that are small enough. A payload goes through shared memory if there is room, and in chunks if it
// is large. The chunks follow the packet's message in order, and the next packet follows them: a
// socket keeps the order of its messages.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/transport/shared_payload.h"
#include "runtime/transport/wire.h"
#include "runtime/transport/zmq_frames.h"
#include "runtime/transport/zmq_memory.h"

namespace troupe::runtime {

// A payload of more bytes is cut; other lanes than control put any number of whole ones into a
// message.
constexpr std::size_t chunk_bytes_of(Lane lane) {
  return lane == Lane::kControl ? kControlChunkBytes : kChunkBytes;
}

// What payloads of a packet stand in its message, and how large the chunks of the others are.
struct Cuts {
  std::size_t inline_bytes = 0;  // at most, of one payload
  bool altogether = false;       // inline_bytes is at most that of all of them
  std::size_t chunk_bytes = 0;
};
constexpr Cuts cuts_of(Lane lane) {
  return {chunk_bytes_of(lane), lane == Lane::kControl, chunk_bytes_of(lane)};
}
// Over UCX: small payloads are copied into one message, others are one each.
inline constexpr Cuts kUcxCuts{std::size_t{4} << 10, true, kMostPayloadBytes};

// Gives `out` the packet's messages one after the other; it reads the frames before it returns.
// Payloads of `shared_from_bytes` and more try `shared`, which may be null. Returns how many
// payloads went there. CHECKs Packet's limits and kMostPayloadBytes.
std::uint64_t cut(const Packet& packet, Lane lane, const Cuts& cuts, SharedSender* shared,
                  std::size_t shared_from_bytes,
                  const std::function<void(std::span<const Buffer> frames)>& out);

// The receiving end of a lane. It reads what an unknown peer may have written: a payload costs
// address space when its first chunk has come, and memory as its chunks come.
class PacketAssembler {
 public:
  // `memory`, for payloads that come in chunks, outlives the assembler. One thread uses both.
  PacketAssembler(std::size_t chunk_bytes, RecycledMemory& memory)
      : chunk_bytes_(chunk_bytes), memory_(memory) {}
  PacketAssembler(Lane lane, RecycledMemory& memory)
      : PacketAssembler(chunk_bytes_of(lane), memory) {}

  // Takes one kPacket or kChunk message and moves from its frames. Returns what is wrong with the
  // message, "" if nothing is; after that the assembler is of no use any more. `shared` may be
  // null.
  std::string take(std::span<Buffer> frames, const SharedReceiver* shared);

  // The packet, once it is whole; called after each take().
  std::optional<Packet> next();

 private:
  // A payload that comes in chunks.
  struct Missing {
    std::size_t payload = 0;  // position in the packet
    std::uint64_t bytes = 0;
  };

  std::string take_packet(std::span<Buffer> frames, const SharedReceiver* shared);
  std::string take_chunk(std::span<Buffer> frames);

  const std::size_t chunk_bytes_;
  RecycledMemory& memory_;
  std::optional<Packet> packet_;
  std::vector<Missing> missing_;  // the next one last
  Buffer filling_;                // for missing_.back()
  std::uint64_t filled_ = 0;      // bytes of it
};

}  // namespace troupe::runtime
