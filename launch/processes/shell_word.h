#pragma once

// Texts as words of a command that people or shells read.

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

}  // namespace troupe::launch
