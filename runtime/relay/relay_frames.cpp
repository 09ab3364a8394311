#include "runtime/relay/relay_frames.h"

#include <algorithm>
#include <concepts>
#include <string_view>

#include "runtime/base/bytes.h"
#include "runtime/base/secret.h"

namespace troupe::runtime {
namespace {

constexpr std::string_view kMagic = "TRPR";
constexpr std::uint8_t kVersion = 2;
// Where each field begins.
constexpr std::size_t kVersionAt = 4, kKindAt = 5, kSocketAt = 6, kZeroAt = 7, kClientAt = 8,
                      kOtherAt = 12, kCallAt = 16, kTokenAt = 24;
static_assert(kTokenAt + std::tuple_size_v<RelayToken> == kRelayFrameBytes);

template <std::unsigned_integral Number>
void put(RelayFrameBytes& bytes, std::size_t at, Number number) {
  std::ranges::copy(to_little_endian(number), bytes.begin() + static_cast<std::ptrdiff_t>(at));
}

template <std::unsigned_integral Number>
Number get(std::span<const std::byte, kRelayFrameBytes> bytes, std::size_t at) {
  return static_cast<Number>(from_little_endian(bytes.subspan(at, sizeof(Number))));
}

}  // namespace

RelayToken draw_relay_token() {
  RelayToken token;
  fill_secret(token);
  return token;
}

std::string token_text(const RelayToken& token) { return hex_text(token); }

std::optional<RelayToken> read_token(std::string_view text) {
  RelayToken token{};
  if (!read_hex(text, token)) return std::nullopt;
  return token;
}

RelayFrameBytes write_relay_frame(const RelayFrame& frame) {
  RelayFrameBytes bytes{};
  for (std::size_t i = 0; i < kMagic.size(); ++i) bytes[i] = static_cast<std::byte>(kMagic[i]);
  put(bytes, kVersionAt, kVersion);
  put(bytes, kKindAt, static_cast<std::uint8_t>(frame.kind));
  put(bytes, kSocketAt, static_cast<std::uint8_t>(frame.socket));
  put(bytes, kClientAt, frame.client);
  put(bytes, kOtherAt, frame.other);
  put(bytes, kCallAt, frame.call);
  std::copy(frame.token.begin(), frame.token.end(), bytes.begin() + kTokenAt);
  return bytes;
}

std::optional<RelayFrame> read_relay_frame(std::span<const std::byte, kRelayFrameBytes> bytes) {
  for (std::size_t i = 0; i < kMagic.size(); ++i) {
    if (bytes[i] != static_cast<std::byte>(kMagic[i])) return std::nullopt;
  }
  const auto kind = get<std::uint8_t>(bytes, kKindAt);
  const auto socket = get<std::uint8_t>(bytes, kSocketAt);
  if (get<std::uint8_t>(bytes, kVersionAt) != kVersion) return std::nullopt;
  if (kind == 0 || kind > static_cast<std::uint8_t>(RelayFrame::Kind::kSign)) return std::nullopt;
  if (socket >= kSockets || bytes[kZeroAt] != std::byte{0}) return std::nullopt;
  RelayFrame frame;
  frame.kind = static_cast<RelayFrame::Kind>(kind);
  frame.socket = static_cast<SocketId>(socket);
  frame.client = get<std::uint32_t>(bytes, kClientAt);
  frame.other = get<std::uint32_t>(bytes, kOtherAt);
  frame.call = get<std::uint64_t>(bytes, kCallAt);
  std::copy_n(bytes.begin() + kTokenAt, frame.token.size(), frame.token.begin());
  return frame;
}

}  // namespace troupe::runtime
