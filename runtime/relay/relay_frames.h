#pragma once

// What members that nobody can dial and a relay say to each other, before it passes bytes on. One
// frame of 40 bytes, little endian: the magic "TRPR", a version, the kind, a socket, a zero, two
// clients, a call, a token.
//
//   the one that is called    relay           the one that calls
//   kAttend             ->
//                       <-    kSign
//                                             <-  kCall   that client, on a socket; a new
//                                             connection
//                       <-    kRing           call and socket
//   kTake               ->                    that call; a new connection
//                             kOpen           ->
//   and from here on what comes from either goes to the other, until one of them ends
//
// kSign comes and goes besides while a client attends, so that both notice when it does not.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/transport/zmq_frames.h"

namespace troupe::runtime {

// By what a relay knows its clients. A secret of the two: the head draws it, and a member gets it
// with its invitation.
using RelayToken = std::array<std::byte, 16>;

// From the system's randomness.
RelayToken draw_relay_token();

// As text: 32 hexadecimal digits. None: anything else.
std::string token_text(const RelayToken& token);
std::optional<RelayToken> read_token(std::string_view text);

struct RelayFrame {
  // Numbers are never given another meaning.
  enum class Kind : std::uint8_t { kAttend = 1, kCall, kTake, kRing, kOpen, kSign };

  Kind kind = Kind::kSign;
  SocketId socket = SocketId::kControl;  // kCall, kRing
  std::uint32_t client = 0;              // who says it; kAttend, kCall, kTake
  std::uint32_t other = 0;               // whom it calls; kCall
  std::uint64_t call = 0;                // kRing, kTake
  // By which the relay knows the client; kAttend, kCall, kTake.
  RelayToken token{};
  bool operator==(const RelayFrame&) const = default;
};

inline constexpr std::size_t kRelayFrameBytes = 40;
using RelayFrameBytes = std::array<std::byte, kRelayFrameBytes>;

RelayFrameBytes write_relay_frame(const RelayFrame& frame);
// None: not a frame of this version.
std::optional<RelayFrame> read_relay_frame(std::span<const std::byte, kRelayFrameBytes> bytes);

}  // namespace troupe::runtime
