#include "runtime/base/json_text.h"

#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "runtime/base/utf8.h"

namespace troupe::runtime {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char first = text[0];
    if (length == 0) {
      out += "\\ufffd";
    } else if (first == '"' || first == '\\') {
      out += '\\';
      out += first;
    } else if (static_cast<unsigned char>(first) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(first));
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + '"';
}

std::string json_number(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}g}", value, digits) : "null";
}

}  // namespace troupe::runtime
