#pragma once

// Compiled programs in the user's cache folder ($XDG_CACHE_HOME/troupe, ~/.cache/troupe), so that
// only the first run on a kind of card compiles. One file per name: a program that has changed
// takes the place of the one before. Any thread may call, and any number of processes at a time: a
// file that two of them have spoilt is a damaged one.

#include <optional>
#include <string>
#include <string_view>

namespace troupe::model::device {

// The code that was kept under this name for this source; nothing where there is none, or where the
// file is damaged. `source`: text, options and version of the compiler.
std::optional<std::string> find_program(const std::string& name, std::string_view source);
// A folder that cannot be written is as good as none.
void keep_program(const std::string& name, std::string_view source, std::string_view code);

}  // namespace troupe::model::device
