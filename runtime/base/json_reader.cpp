#include "runtime/base/json_reader.h"

namespace troupe::runtime {
namespace {

// True if no bracket of the text stands within more than kMostJsonDepth others. Brackets in strings
// do not count.
bool is_shallow(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size() && depth <= kMostJsonDepth; ++i) {
    const char letter = text[i];
    if (letter == '"') {
      in_string = !in_string;
    } else if (in_string) {
      if (letter == '\\') ++i;
    } else if (letter == '[' || letter == '{') {
      ++depth;
    } else if (letter == ']' || letter == '}') {
      --depth;
    }
  }
  return depth <= kMostJsonDepth;
}

}  // namespace

nlohmann::json parse_json(std::string_view text) {
  if (!is_shallow(text)) return nlohmann::json(nlohmann::json::value_t::discarded);
  return nlohmann::json::parse(text, nullptr, false);
}

}  // namespace troupe::runtime
