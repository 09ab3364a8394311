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

std::uint64_t bytes_of(std::span<const Buffer> frames) {
  std::uint64_t sum = 0;
  for (const Buffer& frame : frames) sum += frame.size();
  return sum;
}

}  // namespace

int PacketCutter::next_stripe() {
  const int stripe = turn_;
  turn_ = (turn_ + 1) % limits_.stripes;
  return stripe;
}

PayloadEntry PacketCutter::place(const Buffer& payload, std::size_t inline_bytes,
                                 SharedSender* shared) {
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
  const bool fits = payload.size() <= limits_.chunk_bytes &&
                    payload.size() <= limits_.message_bytes - inline_bytes;
  if (!fits) entry.how = PayloadEntry::How::kChunks;
  return entry;
}

void PacketCutter::cut(const Packet& packet, SharedSender* shared, const Out& out) {
  std::vector<PayloadEntry> entries;
  entries.reserve(packet.payloads.size());
  std::vector<Buffer> frames(1);
  std::size_t inline_bytes = 0;
  for (const Buffer& payload : packet.payloads) {
    entries.push_back(place(payload, inline_bytes, shared));
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

bool PacketAssembler::too_far(std::uint64_t number) const {
  return number - next_ > (limits_.stripes == 1 ? 0 : kMostAhead);
}

void PacketAssembler::charge(Assembly& assembly, std::uint64_t bytes, std::uint64_t entries) {
  assembly.bytes += bytes;
  assembly.entries += entries;
  bytes_ += bytes;
  entries_ += entries;
}

std::string PacketAssembler::over_budget() const {
  if (entries_ * kEntryBytes <= kFreeBytes + 3 * bytes_) return "";
  return fmt::format("{} parts that wait for others and bring {} bytes", entries_, bytes_);
}

std::string PacketAssembler::take_packet(std::span<Buffer> frames, const SharedReceiver* shared) {
  const std::uint64_t bytes = bytes_of(frames);
  std::optional<PacketFrame> frame = read_packet(frames[0]);
  if (!frame) return "a damaged packet";
  if (frame->number < next_) return "a packet that came before";
  if (too_far(frame->number)) return "a packet far before its turn";
  Assembly& assembly = assemblies_[frame->number];
  if (assembly.announced) return "a packet that came before";
  assembly.announced = true;
  assembly.packet.header = std::move(frame->header);
  charge(assembly, bytes, 1);
  if (std::string wrong = take_payloads(assembly, *frame, frames, shared); !wrong.empty()) {
    return wrong;
  }
  for (const EarlyChunk& early : std::exchange(assembly.early, {})) {
    early_bytes_ -= early.bytes.size();
    if (std::string wrong = add_chunk(assembly, early.place, early.bytes); !wrong.empty()) {
      return wrong;
    }
  }
  return over_budget();
}

std::string PacketAssembler::take_payloads(Assembly& assembly, const PacketFrame& frame,
                                           std::span<Buffer> frames, const SharedReceiver* shared) {
  assembly.packet.payloads.resize(frame.payloads.size());
  std::size_t taken = 1;
  for (std::uint32_t i = 0; i < frame.payloads.size(); ++i) {
    const PayloadEntry& entry = frame.payloads[i];
    Buffer& payload = assembly.packet.payloads[i];
    if (entry.how == PayloadEntry::How::kShared) {
      auto found = shared != nullptr ? shared->take(entry.place, entry.bytes) : std::nullopt;
      if (!found) return "a payload outside the shared memory";
      payload = std::move(*found);
      // It brings nothing: all places may be the same one.
      charge(assembly, 0, 1);
    } else if (entry.how == PayloadEntry::How::kFrame) {
      if (taken == frames.size() || frames[taken].size() != entry.bytes) {
        return "a payload of another size than announced";
      }
      payload = std::move(frames[taken++]);
    } else {
      const bool may_be_small = limits_.message_bytes != SIZE_MAX;
      const std::uint64_t least = may_be_small ? 1 : limits_.chunk_bytes + 1;
      if (entry.bytes < least) return "a small payload in chunks";
      Chunked chunked;
      chunked.bytes = entry.bytes;
      chunked.missing = chunks_of(entry.bytes, limits_.chunk_bytes);
      assembly.chunked.emplace(i, std::move(chunked));
      charge(assembly, 0, 1);
    }
  }
  return taken == frames.size() ? "" : "a packet with frames too many";
}

std::string PacketAssembler::take_chunk(std::span<Buffer> frames) {
  const auto place = read_chunk(frames[0].bytes());
  if (!place || frames.size() != 2 || frames[1].empty()) return "a damaged chunk";
  if (place->number < next_) return "a chunk of a packet that is whole";
  if (too_far(place->number)) return "a chunk far before its turn";
  const std::uint64_t bytes = bytes_of(frames);
  Assembly& assembly = assemblies_[place->number];
  if (assembly.announced) {
    charge(assembly, bytes, 0);
    return add_chunk(assembly, *place, frames[1]);
  }
  charge(assembly, bytes, assembly.early.empty() ? 2 : 1);
  return park(assembly, *place, std::move(frames[1]));
}

// Before its announcement only the other stripes' chunks come.
std::string PacketAssembler::park(Assembly& assembly, const ChunkFrame& place, Buffer bytes) {
  if (limits_.stripes == 1) return "a chunk before its packet";
  const bool tail = bytes.size() < limits_.chunk_bytes;
  if (bytes.size() > limits_.chunk_bytes || (tail && place.chunk == 0) ||
      std::uint64_t{place.chunk} * limits_.chunk_bytes >= kMostPayloadBytes) {
    return "a chunk that fits no payload";
  }
  const auto same = [&](const EarlyChunk& other) {
    return tail && other.place.payload == place.payload && other.bytes.size() < limits_.chunk_bytes;
  };
  if (std::any_of(assembly.early.begin(), assembly.early.end(), same)) return "a second tail";
  early_bytes_ += bytes.size();
  if (early_bytes_ > kMostPayloadBytes) return "more chunks before their packets than one can have";
  assembly.early.push_back({place, std::move(bytes)});
  return over_budget();
}

std::string PacketAssembler::add_chunk(Assembly& assembly, const ChunkFrame& place,
                                       const Buffer& bytes) {
  const auto found = assembly.chunked.find(place.payload);
  if (found == assembly.chunked.end()) return "a chunk of no payload";
  Chunked& payload = found->second;
  const std::uint64_t count = chunks_of(payload.bytes, limits_.chunk_bytes);
  if (place.chunk >= count) return "a chunk beyond its payload";
  const std::uint64_t begin = std::uint64_t{place.chunk} * limits_.chunk_bytes;
  // Whole chunks only: nobody touches a page, or makes the table of chunks, with a few bytes.
  if (bytes.size() != std::min<std::uint64_t>(limits_.chunk_bytes, payload.bytes - begin)) {
    return "a chunk of another size";
  }
  if (place.chunk + 1 < count) {
    if (std::string wrong = add_full(payload, place.chunk, count, bytes); !wrong.empty()) {
      return wrong;
    }
  } else {
    if (!payload.tail.empty()) return "a chunk that came before";
    payload.tail = bytes;
  }
  if (--payload.missing > 0) return "";
  const std::uint64_t tail_begin = payload.bytes - payload.tail.size();
  if (std::string wrong = store(payload, tail_begin, payload.tail); !wrong.empty()) return wrong;
  assembly.packet.payloads[place.payload] = std::move(payload.buffer);
  assembly.chunked.erase(found);
  return "";
}

std::string PacketAssembler::add_full(Chunked& payload, std::uint32_t chunk, std::uint64_t count,
                                      const Buffer& bytes) {
  if (payload.seen.empty()) payload.seen.resize(count - 1);
  if (payload.seen[chunk]) return "a chunk that came before";
  payload.seen[chunk] = true;
  return store(payload, std::uint64_t{chunk} * limits_.chunk_bytes, bytes);
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
  bytes_ -= first->second.bytes;
  entries_ -= first->second.entries;
  assemblies_.erase(first);
  ++next_;
  return packet;
}

}  // namespace troupe::runtime
