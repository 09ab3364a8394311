#include "runtime/transport/zmq_packets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace troupe::runtime {
namespace {

// Packets with fewer bytes behind their header keep to the first stripe: they gain nothing from the
// others, and arrive in order there.
constexpr std::size_t kSpreadFromBytes = std::size_t{128} << 10;

std::uint64_t chunks_of(std::uint64_t bytes, std::size_t chunk_bytes) {
  return (bytes + chunk_bytes - 1) / chunk_bytes;
}

}  // namespace

int PacketCutter::next_stripe() {
  const int stripe = turn_;
  turn_ = (turn_ + 1) % limits_.stripes;
  return stripe;
}

PayloadEntry PacketCutter::place(const Buffer& payload, SharedSender* shared) {
  PayloadEntry entry;
  entry.bytes = payload.size();
  if (shared != nullptr && payload.size() >= limits_.shared_from_bytes) {
    if (const auto place = shared->put(payload.bytes())) {
      ++payloads_shared_;
      entry.how = PayloadEntry::How::kShared;
      entry.place = *place;
      return entry;
    }
  }
  if (payload.size() > limits_.chunk_bytes) entry.how = PayloadEntry::How::kChunks;
  return entry;
}

void PacketCutter::cut(const Packet& packet, SharedSender* shared, const Out& out) {
  std::vector<PayloadEntry> entries;
  entries.reserve(packet.payloads.size());
  std::vector<Buffer> frames(1);
  std::size_t inline_bytes = 0;
  for (const Buffer& payload : packet.payloads) {
    entries.push_back(place(payload, shared));
    if (entries.back().how != PayloadEntry::How::kFrame) continue;
    inline_bytes += payload.size();
    frames.push_back(payload);
  }
  const std::uint64_t number = packets_++;
  frames[0] = write_packet(number, entries, packet.header.bytes());
  out(inline_bytes >= kSpreadFromBytes ? next_stripe() : 0, frames);
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    if (entries[i].how != PayloadEntry::How::kChunks) continue;
    const Buffer& payload = packet.payloads[i];
    std::uint32_t chunk = 0;
    for (std::size_t begin = 0; begin < payload.size(); begin += limits_.chunk_bytes) {
      const std::size_t bytes = std::min(limits_.chunk_bytes, payload.size() - begin);
      const Buffer parts[] = {write_chunk({number, i, chunk++}), payload.slice(begin, bytes)};
      out(next_stripe(), parts);
    }
  }
}

std::string PacketAssembler::take(std::span<Buffer> frames, const SharedReceiver* shared) {
  if (frames.empty()) return "a message of too many frames";
  return kind_of(frames[0].bytes()) == FrameKind::kChunk ? take_chunk(frames)
                                                         : take_packet(frames, shared);
}

std::string PacketAssembler::take_packet(std::span<Buffer> frames, const SharedReceiver* shared) {
  std::optional<PacketFrame> frame = read_packet(frames[0]);
  if (!frame) return "a damaged packet";
  if (frame->number < next_) return "a packet that came before";
  Assembly& assembly = assemblies_[frame->number];
  if (assembly.announced) return "a packet that came before";
  assembly.announced = true;
  assembly.packet.header = std::move(frame->header);
  assembly.packet.payloads.resize(frame->payloads.size());
  std::size_t taken = 1;
  for (std::uint32_t i = 0; i < frame->payloads.size(); ++i) {
    const PayloadEntry& entry = frame->payloads[i];
    Buffer& payload = assembly.packet.payloads[i];
    if (entry.how == PayloadEntry::How::kShared) {
      auto found = shared != nullptr ? shared->take(entry.place, entry.bytes) : std::nullopt;
      if (!found) return "a payload outside the shared memory";
      payload = std::move(*found);
    } else if (entry.how == PayloadEntry::How::kFrame) {
      if (taken == frames.size() || frames[taken].size() != entry.bytes) {
        return "a payload of another size than announced";
      }
      payload = std::move(frames[taken++]);
    } else {
      if (entry.bytes <= limits_.chunk_bytes) return "a small payload in chunks";
      Chunked chunked;
      chunked.bytes = entry.bytes;
      chunked.missing = chunks_of(entry.bytes, limits_.chunk_bytes);
      assembly.chunked.emplace(i, std::move(chunked));
    }
  }
  if (taken != frames.size()) return "a packet with frames too many";
  for (const EarlyChunk& early : std::exchange(assembly.early, {})) {
    if (std::string wrong = add_chunk(assembly, early.place, early.bytes); !wrong.empty()) {
      return wrong;
    }
  }
  return "";
}

std::string PacketAssembler::take_chunk(std::span<Buffer> frames) {
  const auto place = read_chunk(frames[0].bytes());
  if (!place || frames.size() != 2 || frames[1].empty()) return "a damaged chunk";
  if (place->number < next_) return "a chunk of a packet that is whole";
  Assembly& assembly = assemblies_[place->number];
  if (assembly.announced) return add_chunk(assembly, *place, frames[1]);
  assembly.early.push_back({*place, std::move(frames[1])});
  return "";
}

std::string PacketAssembler::add_chunk(Assembly& assembly, const ChunkFrame& place,
                                       const Buffer& bytes) {
  const auto found = assembly.chunked.find(place.payload);
  if (found == assembly.chunked.end()) return "a chunk of no payload";
  Chunked& payload = found->second;
  const std::uint64_t count = chunks_of(payload.bytes, limits_.chunk_bytes);
  if (place.chunk >= count) return "a chunk beyond its payload";
  const std::uint64_t begin = std::uint64_t{place.chunk} * limits_.chunk_bytes;
  // Whole chunks only: nobody touches a page, or grows the table below, with a few bytes.
  if (bytes.size() != std::min<std::uint64_t>(limits_.chunk_bytes, payload.bytes - begin)) {
    return "a chunk of another size";
  }
  if (payload.seen.empty()) payload.seen.resize(count);
  if (payload.seen[place.chunk]) return "a chunk that came before";
  payload.seen[place.chunk] = true;
  --payload.missing;
  if (place.chunk == count - 1) {
    payload.tail = bytes;
  } else if (std::string wrong = store(payload, begin, bytes); !wrong.empty()) {
    return wrong;
  }
  if (payload.missing > 0) return "";
  const std::uint64_t tail_begin = payload.bytes - payload.tail.size();
  if (std::string wrong = store(payload, tail_begin, payload.tail); !wrong.empty()) return wrong;
  assembly.packet.payloads[place.payload] = std::move(payload.buffer);
  assembly.chunked.erase(found);
  return "";
}

std::string PacketAssembler::store(Chunked& payload, std::uint64_t begin, const Buffer& bytes) {
  if (payload.buffer.empty()) payload.buffer = memory_.take(payload.bytes);
  if (payload.buffer.empty()) {
    return fmt::format("a payload of {} bytes, for which there is no memory", payload.bytes);
  }
  std::memcpy(payload.buffer.mutable_data() + begin, bytes.data(), bytes.size());
  return "";
}

std::optional<Packet> PacketAssembler::next() {
  const auto first = assemblies_.begin();
  if (first == assemblies_.end() || first->first != next_ || !first->second.announced ||
      !first->second.chunked.empty()) {
    return std::nullopt;
  }
  Packet packet = std::move(first->second.packet);
  assemblies_.erase(first);
  ++next_;
  return packet;
}

}  // namespace troupe::runtime
