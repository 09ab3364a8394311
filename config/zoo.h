#pragma once

// The models that come with the program: files in the topology language (the content of its `model`
// section), embedded from config/zoo.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/place.h"

namespace troupe::config {

// Sorted.
std::vector<std::string> zoo_names();
// The text of a model's file; nothing if there is no such model.
std::optional<std::string_view> zoo_text(std::string_view name);
// The source of places in that file: "zoo/NAME.yaml".
std::string zoo_source(std::string_view name);
bool is_from_zoo(const Place& place);

}  // namespace troupe::config
