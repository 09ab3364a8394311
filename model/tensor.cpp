#include "model/tensor.h"

#include <fmt/format.h>

namespace troupe::model {

std::size_t bytes_of(DataType type) { return type == DataType::kFloat32 ? 4 : 8; }

std::string Shape::text() const {
  if (spatial_rank == 0) return fmt::format("{}", channels);
  std::string text;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(spatial_rank); ++axis) {
    text += fmt::format("{}x", space[axis]);
  }
  return text + fmt::format("{}", channels);
}

}  // namespace troupe::model
