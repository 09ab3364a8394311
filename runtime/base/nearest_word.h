#pragma once

// Finds the known word that a mistyped one was meant to be.

#include <span>
#include <string>
#include <string_view>

namespace troupe::runtime {

// Least number of insertions, deletions, replacements and swaps of neighbours that turn one word
// into the other (optimal string alignment); letters compare without case, '-' equals '_'.
int edit_distance(std::string_view a, std::string_view b);

// The nearest of `known` when it is near enough to be meant (a third of its letters), else nothing.
std::string nearest_word(std::string_view word, std::span<const std::string> known);

}  // namespace troupe::runtime
