#pragma once

// "Did you mean": the nearest known word to a mistyped one.

#include <span>
#include <string>
#include <string_view>

namespace troupe::config {

// Least number of insertions, deletions, replacements and swaps of neighbours that turn one word
// into the other (optimal string alignment); letters compare without case, '-' equals '_'.
int edit_distance(std::string_view a, std::string_view b);

// The nearest of `known` when it is near enough to be meant (a third of its letters), else nothing.
std::string nearest(std::string_view word, std::span<const std::string> known);

// What to append to a message: `; did you mean "filters"?`, or `; known here: a, b, c`.
std::string suggestion(std::string_view word, std::span<const std::string> known);

}  // namespace troupe::config
