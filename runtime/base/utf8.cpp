#include "runtime/base/utf8.h"

#include <algorithm>
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

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// Of a well-formed sequence.
char32_t code_point(std::string_view character) {
  const auto first = static_cast<std::uint8_t>(character[0]);
  if (character.size() == 1) return first;
  char32_t code = first & (0x7Fu >> character.size());
  for (const char byte : character.substr(1)) {
    code = code << 6 | (static_cast<std::uint8_t>(byte) & 0x3Fu);
  }
  return code;
}

bool is_control(char32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

bool turns_direction(char32_t code) {
  return code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

template <class Keeps>
std::string replaced(std::string_view text, const Keeps& keeps) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    out.append(length != 0 && keeps(character) ? character : kReplacement);
    text.remove_prefix(character.size());
  }
  return out;
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
  return replaced(text, [](std::string_view) { return true; });
}

bool is_hidden(std::string_view character) {
  const char32_t code = code_point(character);
  return is_control(code) || turns_direction(code);
}

std::string hidden_name(std::string_view character) {
  const char32_t code = code_point(character);
  const auto number = static_cast<std::uint32_t>(code);
  if (is_control(code)) return fmt::format("the control character U+{:04X}", number);
  return fmt::format("U+{:04X} (it turns the direction of writing)", number);
}

std::string printable(std::string_view text) {
  return replaced(text, [](std::string_view character) { return !is_hidden(character); });
}

}  // namespace troupe::runtime
