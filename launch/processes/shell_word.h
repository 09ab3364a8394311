#pragma once

// Texts as words of a command that people or shells read.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::launch {

// In single quotes, which any shell takes for one word.
std::string quoted(std::string_view text);
// The same, without quotes where the text needs none.
std::string shell_word(std::string_view text);
// Words as a command line for a shell.
std::string command_line(const std::vector<std::string>& words);
// Back: splits the line at spaces, as quotes and backslashes say, and as nothing else of a shell
// does. Nothing: a quote does not end.
std::optional<std::vector<std::string>> words_of_line(std::string_view line);

}  // namespace troupe::launch
