#pragma once

// The fields of the topology language found by what people call them, for suggestions. Made from
// the table the parser uses (topology_fields.h). Any thread.

#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {

// Paths of the fields that a word means, in the order of the table, at most three: the field of
// that path, else those of that name ("epochs": train.epochs), else those directly in a section of
// that name ("optimiser": train.optimiser.g and .d). '-' and '_' are the same. Items of lists are
// no fields.
std::vector<std::string> fields_named(std::string_view word);
// Likewise those whose name is nearest to the word, if one is near enough.
std::vector<std::string> fields_near(std::string_view word);

// A field one of whose words is the word.
struct FieldOfWord {
  std::string path;
  // Why it does not take the word in this version; empty: it does.
  std::string refusal;
};
std::vector<FieldOfWord> fields_taking(std::string_view word);

// The words a field takes; CHECKs that there is such a field.
std::vector<std::string> words_of(std::string_view path);

}  // namespace troupe::config
