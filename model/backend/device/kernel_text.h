#pragma once

// The sources of the devices' program, compiled into this one.

#include <span>
#include <string_view>

namespace troupe::model::device {

struct EmbeddedFile {
  std::string_view name, text;
};
// In the order of their names.
std::span<const EmbeddedFile> embedded_kernels();

}  // namespace troupe::model::device
