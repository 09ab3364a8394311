#pragma once

// Files that were compiled in; cmake/troupe_embed.cmake makes the sources.

#include <span>
#include <string_view>

namespace troupe::config {

struct EmbeddedFile {
  std::string_view name;  // without folder
  std::string_view text;
};

// config/zoo/*.yaml, sorted by name.
std::span<const EmbeddedFile> embedded_zoo();
// config/topologies/*.yaml, likewise.
std::span<const EmbeddedFile> embedded_topologies();

}  // namespace troupe::config
