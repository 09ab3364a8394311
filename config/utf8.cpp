#include "config/utf8.h"

#include <algorithm>

namespace troupe::config {

std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(at), second = byte(at + 1);
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(at + 1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool fits = (first != 0xE0 || second >= 0xA0) && (first != 0xED || second < 0xA0);
    return fits && continues(at + 1) && continues(at + 2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool fits = (first != 0xF0 || second >= 0x90) && (first != 0xF4 || second < 0x90);
    return fits && continues(at + 1) && continues(at + 2) && continues(at + 3) ? 4 : 0;
  }
  return 0;
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_bytes(text, at);
    if (bytes == 0) return false;
    at += bytes;
  }
  return true;
}

std::string as_utf8(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_bytes(text, at);
    result += bytes == 0 ? "?" : text.substr(at, bytes);
    at += std::max<std::size_t>(bytes, 1);
  }
  return result;
}

}  // namespace troupe::config
