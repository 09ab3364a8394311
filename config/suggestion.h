#pragma once

// "Did you mean": the nearest known word to a mistyped one.

#include <span>
#include <string>
#include <string_view>

namespace troupe::config {

// The end of a message: `; did you mean "filters"?`, or `; known here: a, b, c`.
std::string suggestion(std::string_view word, std::span<const std::string> known);

}  // namespace troupe::config
