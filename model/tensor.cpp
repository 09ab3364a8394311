#include "model/tensor.h"

#include <fmt/format.h>

namespace troupe::model {

std::size_t bytes_of(DataType type) { return type == DataType::kFloat32 ? 4 : 8; }

std::string Shape::text() const {
  if (spatial_rank == 0) return fmt::format("{}", channels);
  std::string text = fmt::format("{}x{}", space[0], space[1]);
  if (spatial_rank == 3) text += fmt::format("x{}", space[2]);
  return text + fmt::format("x{}", channels);
}

}  // namespace troupe::model
