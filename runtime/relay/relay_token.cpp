#include "runtime/relay/relay_token.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "runtime/base/secret.h"

namespace troupe::runtime {

RelayToken draw_relay_token() {
  RelayToken token;
  fill_secret(token);
  return token;
}

std::string token_text(const RelayToken& token) {
  std::string text;
  for (const std::byte byte : token) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

std::optional<RelayToken> read_token(std::string_view text) {
  RelayToken token{};
  if (text.size() != 2 * token.size()) return std::nullopt;
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::uint8_t byte = 0;
    const auto end = text.data() + 2 * i + 2;
    const auto parsed = std::from_chars(text.data() + 2 * i, end, byte, 16);
    if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
    token[i] = static_cast<std::byte>(byte);
  }
  return token;
}

}  // namespace troupe::runtime
