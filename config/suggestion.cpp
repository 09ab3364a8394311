#include "config/suggestion.h"

#include <fmt/format.h>

#include "runtime/base/nearest_word.h"

namespace troupe::config {

std::string suggestion(std::string_view word, std::span<const std::string> known) {
  if (const std::string meant = runtime::nearest_word(word, known); !meant.empty()) {
    return fmt::format("; did you mean \"{}\"?", meant);
  }
  if (known.empty()) return {};
  return fmt::format("; known here: {}", fmt::join(known, ", "));
}

}  // namespace troupe::config
