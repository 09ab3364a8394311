#include "model/backend/cpu/rearrange.h"

#include <algorithm>

namespace troupe::model::cpu {

void rearrange(const Rearrangement& r, const float* image, float* planes) {
  std::fill_n(planes, r.numbers * r.channels * r.plane, 0.0f);
  for (std::int64_t y = 0; y < r.rows; ++y) {
    const std::int64_t plane_row = y + r.first_row;
    if (plane_row < 0 || plane_row >= r.plane_rows) continue;
    for (std::int64_t d = 0; d < r.numbers; ++d) {
      float* numbers = planes + d * r.channels * r.plane + plane_row * r.row;
      for (std::int64_t t = 0; t < r.row; ++t) {
        const std::int64_t z = t * r.step + d - r.before;
        if (z < 0 || z >= r.row_cells) continue;
        const float* cell = image + y * r.row_stride + z * r.cell_stride;
        for (std::int64_t c = 0; c < r.channels; ++c) numbers[c * r.plane + t] = cell[c];
      }
    }
  }
}

}  // namespace troupe::model::cpu
