#pragma once

// --set a.b.c=value: changes of the YAML tree before anything is read from it.

#include <string>
#include <string_view>

#include "config/yaml_value.h"
#include "runtime/base/error.h"

namespace troupe::config {

struct Override {
  std::vector<std::string> path;  // keys, and indices of lists
  YamlValue value;                // every place is "--set a.b.c=value"
  Place place;
};

// Splits at the first '='; the value is YAML. kUsage: no '=' or an empty key; problems of the value
// go to `problems`.
runtime::Result<Override> parse_override(std::string_view text, Problems& problems);

// Puts the value at its path, making sections on the way. A scalar on the way becomes a section in
// which it stands under the empty key, since it may be the short form of one (record.h). Lists are
// entered by index; one out of range is a problem.
void apply_override(YamlValue& root, const Override& change, Problems& problems);

}  // namespace troupe::config
