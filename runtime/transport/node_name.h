#pragma once

// Names of nodes as they go from one process to another.

#include <cstddef>
#include <string_view>

namespace troupe::runtime {

inline constexpr std::size_t kMostNodeName = 256;

// 1 to kMostNodeName bytes of UTF-8 without control characters. A connection on which a longer one
// is said is cut; of others control characters are replaced before anybody sees them.
bool is_node_name(std::string_view text);

}  // namespace troupe::runtime
