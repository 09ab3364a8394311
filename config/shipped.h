#pragma once

// Texts that come with the program, embedded from config/: topologies, which are found by name
// where a topology file is asked for and there is none of that name, and the models of the zoo,
// which are files in the topology language (the content of its `model` section).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/place.h"

namespace troupe::config {

// Sorted; without ".yaml".
std::vector<std::string> shipped_names();
// The text of the topology that `path` names; nothing where it does not, or is something in the
// file system.
std::optional<std::string_view> shipped_text(const std::string& path);
// The end of the message that there is no file `path`: the name that may have been meant, or
// all there are; empty for a path into some folder.
std::string shipped_suggestion(const std::string& path);

// The models, sorted; without ".yaml".
std::vector<std::string> zoo_names();
// The text of a model's file; nothing if there is no such model.
std::optional<std::string_view> zoo_text(std::string_view name);
// The source of places in that file: "zoo/NAME.yaml".
std::string zoo_source(std::string_view name);
bool is_from_zoo(const Place& place);

}  // namespace troupe::config
