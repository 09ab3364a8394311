#include "runtime/base/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

namespace troupe::runtime {

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xC2 && lead < 0xE0 ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
  const bool beyond = lead == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

namespace {

// The code point of a well-formed sequence.
char32_t code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(character[i]); };
  constexpr std::array<std::uint8_t, 5> kLeadBits = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t point = byte(0) & kLeadBits[character.size()];
  for (std::size_t i = 1; i < character.size(); ++i) point = point << 6 | (byte(i) & 0x3F);
  return point;
}

// Marks, embeddings and isolates of Unicode's bidirectional algorithm.
bool turns_direction(char32_t point) {
  return point == 0x61C || point == 0x200E || point == 0x200F ||
         (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
}

// C0 and C1, and what breaks lines and paragraphs.
bool is_control_point(char32_t point) {
  return point < 0x20 || (point >= 0x7F && point <= 0x9F) || point == 0x2028 || point == 0x2029;
}

bool is_hidden_point(char32_t point) { return is_control_point(point) || turns_direction(point); }

std::string escape_of(char32_t point) {
  if (point == '\n') return "\\n";
  if (point == '\r') return "\\r";
  if (point == '\t') return "\\t";
  return point < 0x100 ? fmt::format("\\x{:02x}", static_cast<std::uint32_t>(point))
                       : fmt::format("\\u{:04x}", static_cast<std::uint32_t>(point));
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string valid_utf8(std::string_view text) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    out.append(length == 0 ? kReplacement : text.substr(0, length));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

bool is_hidden(std::string_view character) { return is_hidden_point(code_point(character)); }

std::string hidden_name(std::string_view character) {
  const char32_t point = code_point(character);
  const auto number = static_cast<std::uint32_t>(point);
  if (is_control_point(point)) return fmt::format("the control character U+{:04X}", number);
  return fmt::format("U+{:04X} (it turns the direction of writing)", number);
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0) {
      out += fmt::format("\\x{:02x}", static_cast<std::uint8_t>(character[0]));
    } else if (const char32_t point = code_point(character); is_hidden_point(point)) {
      out += escape_of(point);
    } else {
      out.append(character);
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string printable_lines(std::string_view text) {
  constexpr std::string_view kIndent = "  ";
  std::string out;
  for (bool first = true;; first = false) {
    const std::size_t end = text.find('\n');
    const std::string line = printable(text.substr(0, end));
    if (!first && !line.starts_with(kIndent) && !line.empty()) out += kIndent;
    out += line;
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace troupe::runtime
