#pragma once

// How one fuzz input is a talk with a node: lines, each a byte that says what is done, in which
// lane and by whom, and for what is said the packet: its length in two bytes, little endian, and
// what packet_of() makes a packet of. Every input is a talk.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fuzz/frames.h"
#include "runtime/lane.h"
#include "runtime/transport/wire.h"

namespace troupe::fuzz {

inline constexpr std::size_t kMostLines = 64;
inline constexpr unsigned kSpeakers = 3;

enum class Deed : std::uint8_t { kConnect, kClose, kWait, kSay };

struct Line {
  Deed deed = Deed::kSay;
  unsigned lane = 0;     // 0 to 2
  unsigned speaker = 0;  // 0 to 2
  runtime::Packet packet;
};

inline std::vector<Line> talk_of(std::span<const std::byte> input) {
  std::vector<Line> talk;
  while (!input.empty() && talk.size() < kMostLines) {
    const auto first = std::to_integer<unsigned>(input[0]);
    input = input.subspan(1);
    Line line{static_cast<Deed>(first % 4), first / 4 % 3, first / 12 % kSpeakers, {}};
    if (line.deed == Deed::kSay && input.size() >= 2) {
      const auto low = std::to_integer<std::size_t>(input[0]);
      const auto high = std::to_integer<std::size_t>(input[1]);
      const std::size_t length = std::min(low | high << 8, input.size() - 2);
      line.packet = packet_of(input.subspan(2, length));
      input = input.subspan(2 + length);
    }
    talk.push_back(std::move(line));
  }
  return talk;
}

// Appends a line that says the packet.
inline void say(std::vector<std::byte>& input, unsigned lane, const runtime::Packet& packet,
                unsigned speaker = 0) {
  const std::vector<std::byte> said = input_of(packet);
  CHECK(said.size() <= UINT16_MAX);
  input.push_back(
      static_cast<std::byte>(static_cast<unsigned>(Deed::kSay) + 4 * lane + 12 * speaker));
  input.push_back(static_cast<std::byte>(said.size()));
  input.push_back(static_cast<std::byte>(said.size() >> 8));
  input.insert(input.end(), said.begin(), said.end());
}

// Appends a line that does something else.
inline void act(std::vector<std::byte>& input, Deed deed, unsigned speaker = 0) {
  input.push_back(static_cast<std::byte>(static_cast<unsigned>(deed) + 12 * speaker));
}

}  // namespace troupe::fuzz
