#pragma once

// The topologies that come with the program, embedded from config/topologies. They are found by
// name where a topology file is asked for and there is none of that name.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {

// Sorted; without ".yaml".
std::vector<std::string> shipped_names();
// The text of the topology that `path` names; nothing where it does not, or is something in the
// file system.
std::optional<std::string_view> shipped_text(const std::string& path);
// The end of the message that there is no file `path`: the name that may have been meant, or
// all there are; empty for a path into some folder.
std::string shipped_suggestion(const std::string& path);

}  // namespace troupe::config
