#include "runtime/transport/zmq_packets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::runtime {

// How each payload travels is decided first, since the packet's message says so; chunks come last.
std::uint64_t cut(const Packet& packet, Lane lane, const Cuts& cuts, SharedSender* shared,
                  std::size_t shared_from_bytes,
                  const std::function<void(std::span<const Buffer> frames)>& out) {
  CHECK(packet.payloads.size() <= Packet::kMostPayloads, "a packet has too many payloads");
  std::vector<PayloadEntry> entries;
  entries.reserve(packet.payloads.size());
  std::vector<Buffer> frames(1);
  std::size_t in_frames = 0;
  std::uint64_t through_memory = 0;
  for (const Buffer& payload : packet.payloads) {
    CHECK(payload.size() <= kMostPayloadBytes, "a payload is too large");
    PayloadEntry& entry = entries.emplace_back();
    entry.bytes = payload.size();
    if (shared != nullptr && payload.size() >= shared_from_bytes) {
      if (const auto place = shared->put(payload.bytes())) {
        ++through_memory;
        entry.how = PayloadEntry::How::kShared;
        entry.place = *place;
        continue;
      }
    }
    const std::size_t room = cuts.inline_bytes - (cuts.altogether ? in_frames : 0);
    if (payload.size() > room) {
      entry.how = PayloadEntry::How::kChunks;
    } else {
      in_frames += payload.size();
      frames.push_back(payload);
    }
  }
  frames[0] = write_packet(lane, entries, packet.header.bytes());
  out(frames);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].how != PayloadEntry::How::kChunks) continue;
    const Buffer& payload = packet.payloads[i];
    for (std::size_t begin = 0; begin < payload.size(); begin += cuts.chunk_bytes) {
      const std::size_t bytes = std::min(cuts.chunk_bytes, payload.size() - begin);
      const Buffer parts[] = {write_bare(FrameKind::kChunk, lane), payload.slice(begin, bytes)};
      out(parts);
    }
  }
  return through_memory;
}

std::string PacketAssembler::take(std::span<Buffer> frames, const SharedReceiver* shared) {
  return kind_of(frames[0].bytes()) == FrameKind::kChunk ? take_chunk(frames)
                                                         : take_packet(frames, shared);
}

// Payloads that come in chunks are noted, the last one first, and the packet waits for them.
std::string PacketAssembler::take_packet(std::span<Buffer> frames, const SharedReceiver* shared) {
  std::optional<PacketFrame> frame = read_packet(frames[0]);
  if (!frame) return "a damaged packet";
  if (packet_) return "a packet before the one before it was whole";
  packet_.emplace();
  packet_->header = std::move(frame->header);
  packet_->payloads.resize(frame->payloads.size());
  std::size_t taken = 1;
  for (std::size_t i = 0; i < frame->payloads.size(); ++i) {
    const PayloadEntry& entry = frame->payloads[i];
    if (entry.how == PayloadEntry::How::kShared) {
      auto found = shared != nullptr ? shared->take(entry.place, entry.bytes) : std::nullopt;
      if (!found) return "a payload outside the shared memory";
      packet_->payloads[i] = std::move(*found);
    } else if (entry.how == PayloadEntry::How::kFrame) {
      if (taken == frames.size() || frames[taken].size() != entry.bytes) {
        return "a payload of another size than announced";
      }
      packet_->payloads[i] = std::move(frames[taken++]);
    } else {
      if (entry.bytes == 0) return "an empty payload in chunks";
      missing_.push_back({i, entry.bytes});
    }
  }
  std::ranges::reverse(missing_);
  return taken == frames.size() ? "" : "a packet with too many frames";
}

// Every chunk but a payload's last has the full size, so the size of each is known before it comes.
// A payload in one chunk stays where that was received; a larger one gets memory with its first
// chunk.
std::string PacketAssembler::take_chunk(std::span<Buffer> frames) {
  if (frames.size() != 2) return "a damaged chunk";
  if (missing_.empty()) return "a chunk of no payload";
  const auto [payload, bytes] = missing_.back();
  Buffer& chunk = frames[1];
  if (chunk.size() != std::min<std::uint64_t>(chunk_bytes_, bytes - filled_)) {
    return "a chunk of another size";
  }
  if (chunk.size() == bytes) {
    filling_ = std::move(chunk);
    filled_ = bytes;
  } else {
    if (filled_ == 0) filling_ = memory_.take(bytes);
    if (filling_.empty()) {
      return fmt::format("a payload of {} bytes, for which there is no memory", bytes);
    }
    std::memcpy(filling_.mutable_data() + filled_, chunk.data(), chunk.size());
    filled_ += chunk.size();
  }
  if (filled_ < bytes) return "";
  packet_->payloads[payload] = std::exchange(filling_, {});
  missing_.pop_back();
  filled_ = 0;
  return "";
}

std::optional<Packet> PacketAssembler::next() {
  if (!packet_ || !missing_.empty()) return std::nullopt;
  return std::exchange(packet_, std::nullopt);
}

}  // namespace troupe::runtime
