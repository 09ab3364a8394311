#pragma once

// How one fuzz input is what arrives over a connection: lines, each a byte for the lane (two bits)
// and for how the frames are made, then these.
//   as they stand: the number of frames in a byte, then each with its length in two bytes, little
//     endian. So whatever an unknown peer may send can be written.
//   a packet: the number of payloads in a byte, and in a byte each how it travels: in a frame of so
//     many bytes, or (from 128 on) in so many chunks and a byte.
//   a chunk, full or of one byte. Its bytes are zeros that the input does not hold.
// What the input does not hold is zero, so that every input is a script.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/lane.h"
#include "runtime/transport/zmq_packets.h"

namespace troupe::fuzz {

enum class WireDeed : std::uint8_t { kFrames, kPacket, kFullChunk, kSmallChunk };

struct WireLine {
  unsigned lane = 0;  // 0 to 2
  std::vector<runtime::Buffer> frames;
};

class WireScript {
 public:
  static constexpr std::size_t kMostLines = 20'000;
  // Then they are of one byte: a script holds the memory of no more.
  static constexpr std::size_t kMostFullChunks = 64;

  explicit WireScript(std::span<const std::byte> input) : rest_(input) {}

  // Nothing at the end.
  std::optional<WireLine> next() {
    if (rest_.empty() || ++lines_ > kMostLines) return std::nullopt;
    const std::size_t first = number(1);
    WireLine line{static_cast<unsigned>(first % 4 % runtime::kLanes), {}};
    line.frames =
        frames(static_cast<WireDeed>(first / 4 % 4), static_cast<runtime::Lane>(line.lane));
    for (const runtime::Buffer& frame : line.frames) arrived_ += frame.size();
    return line;
  }

  // The bytes of all frames so far.
  std::size_t arrived() const { return arrived_; }

 private:
  using Frames = std::vector<runtime::Buffer>;

  Frames frames(WireDeed deed, runtime::Lane lane) {
    switch (deed) {
      case WireDeed::kFrames:
        return raw();
      case WireDeed::kPacket:
        return packet(lane);
      case WireDeed::kFullChunk:
        return chunk(lane, ++full_chunks_ <= kMostFullChunks ? chunk_bytes_of(lane) : 1);
      case WireDeed::kSmallChunk:
        return chunk(lane, 1);
    }
    return {};
  }
  Frames raw() {
    Frames made(number(1) % 8);
    for (runtime::Buffer& frame : made) frame = runtime::Buffer::copy_of(take(number(2)));
    return made;
  }
  static Frames chunk(runtime::Lane lane, std::size_t bytes) {
    return {write_bare(runtime::FrameKind::kChunk, lane), runtime::Buffer::zeroed(bytes)};
  }
  Frames packet(runtime::Lane lane) {
    std::vector<runtime::PayloadEntry> entries(number(1));
    Frames made(1);
    for (runtime::PayloadEntry& entry : entries) {
      const std::size_t how = number(1);
      entry.bytes = how;
      if (how >= 128) {
        entry.how = runtime::PayloadEntry::How::kChunks;
        entry.bytes = (how - 127) * chunk_bytes_of(lane) + 1;
      } else {
        made.push_back(runtime::Buffer::zeroed(how));
      }
    }
    made[0] = runtime::write_packet(lane, entries, take(24));
    return made;
  }

  std::span<const std::byte> take(std::size_t bytes) {
    const auto taken = rest_.first(std::min(bytes, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  std::size_t number(std::size_t bytes) {
    std::size_t value = 0, shift = 0;
    for (const std::byte byte : take(bytes)) {
      value |= std::to_integer<std::size_t>(byte) << shift;
      shift += 8;
    }
    return value;
  }

  std::span<const std::byte> rest_;
  std::size_t lines_ = 0;
  std::size_t full_chunks_ = 0;
  std::size_t arrived_ = 0;
};

// Writes a script.
class WireScriptWriter {
 public:
  WireScriptWriter& frames(unsigned lane, const std::vector<runtime::Buffer>& frames) {
    begin(lane, WireDeed::kFrames);
    number(frames.size(), 1);
    for (const runtime::Buffer& frame : frames) {
      number(frame.size(), 2);
      script_.insert(script_.end(), frame.bytes().begin(), frame.bytes().end());
    }
    return *this;
  }
  // With a header of 24 zeros.
  WireScriptWriter& packet(unsigned lane, const std::vector<int>& payloads) {
    begin(lane, WireDeed::kPacket);
    number(payloads.size(), 1);
    for (const int payload : payloads) number(static_cast<std::size_t>(payload), 1);
    script_.resize(script_.size() + 24);
    return *this;
  }
  WireScriptWriter& chunk(unsigned lane, bool full) {
    begin(lane, full ? WireDeed::kFullChunk : WireDeed::kSmallChunk);
    return *this;
  }
  const std::vector<std::byte>& script() const { return script_; }

 private:
  void begin(unsigned lane, WireDeed deed) { number(lane + 4 * static_cast<std::size_t>(deed), 1); }
  void number(std::size_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
      script_.push_back(static_cast<std::byte>(value >> (8 * i)));
    }
  }

  std::vector<std::byte> script_;
};

}  // namespace troupe::fuzz
