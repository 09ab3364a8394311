#pragma once

// How one fuzz input is a packet: its first byte is the number of payloads, then the length of each
// in two bytes, little endian, then the payloads, then the header. Lengths that the input does not
// hold are cut, so that every input is a packet.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/base/error.h"
#include "runtime/transport/wire.h"

namespace troupe::fuzz {

inline constexpr std::size_t kMostFrames = 8;

inline runtime::Packet packet_of(std::span<const std::byte> input) {
  const auto take = [&input](std::size_t bytes) {
    const auto taken = input.first(std::min(bytes, input.size()));
    input = input.subspan(taken.size());
    return taken;
  };
  const auto number = [&take](std::size_t bytes) {
    std::size_t value = 0, shift = 0;
    for (const std::byte byte : take(bytes)) {
      value |= std::to_integer<std::size_t>(byte) << shift;
      shift += 8;
    }
    return value;
  };
  std::vector<std::size_t> lengths(number(1) % (kMostFrames + 1));
  for (std::size_t& length : lengths) length = number(2);
  runtime::Packet packet;
  for (const std::size_t length : lengths) {
    packet.payloads.push_back(runtime::Buffer::copy_of(take(length)));
  }
  packet.header = runtime::Buffer::copy_of(input);
  return packet;
}

// The input that packet_of() makes the packet of; CHECKs that it has no more than fits.
inline std::vector<std::byte> input_of(const runtime::Packet& packet) {
  CHECK(packet.payloads.size() <= kMostFrames);
  std::vector<std::byte> input{static_cast<std::byte>(packet.payloads.size())};
  for (const runtime::Buffer& payload : packet.payloads) {
    CHECK(payload.size() <= UINT16_MAX);
    input.push_back(static_cast<std::byte>(payload.size()));
    input.push_back(static_cast<std::byte>(payload.size() >> 8));
  }
  const auto append = [&input](const runtime::Buffer& part) {
    input.insert(input.end(), part.bytes().begin(), part.bytes().end());
  };
  for (const runtime::Buffer& payload : packet.payloads) append(payload);
  append(packet.header);
  return input;
}

}  // namespace troupe::fuzz
