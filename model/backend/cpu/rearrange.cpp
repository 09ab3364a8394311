#include "model/backend/cpu/rearrange.h"

#include <algorithm>

#include <hwy/cache_control.h>

#include "model/backend/cpu/plane_transforms.h"
#include "runtime/base/error.h"

namespace troupe::model::cpu {

namespace {

constexpr std::int64_t kRowsAhead = 2;

// Numbers d of one row, for positions [begin, end).
struct RowPart {
  const float* cells;  // of position `begin`
  float* numbers;      // of the first channel
  std::int64_t count;
};

void copy_cell_by_cell(const Rearrangement& r, const RowPart& part) {
  for (std::int64_t t = 0; t < part.count; ++t) {
    const float* cell = part.cells + t * r.step * r.cell_stride;
    for (std::int64_t c = 0; c < r.channels; ++c) part.numbers[c * r.plane + t] = cell[c];
  }
}

// Images are larger than the nearer caches, and numbers read a row in steps that no prefetcher of a
// processor foresees.
void fetch_row(const Rearrangement& r, const float* row) {
  constexpr std::int64_t kLine = 64 / sizeof(float);
  for (std::int64_t i = 0; i < r.row_stride; i += kLine) hwy::Prefetch(row + i);
}

}  // namespace

void rearrange(const Rearrangement& r, const float* image, float* planes) {
  CHECK(r.numbers == 1 || r.number_stride > 0, "where are the other numbers?");
  for (std::int64_t d = 0; d < r.numbers; ++d) {
    std::fill_n(planes + d * r.number_stride, r.channels * r.plane, 0.0f);
  }
  for (std::int64_t y = 0; y < r.rows; ++y) {
    if (y + kRowsAhead < r.rows) fetch_row(r, image + (y + kRowsAhead) * r.row_stride);
    const std::int64_t plane_row = y + r.first_row;
    if (plane_row < 0 || plane_row >= r.plane_rows) continue;
    // Zeros behind a row fall on the next row, which is written later, or on its zeros.
    const bool in_vectors = r.channels > 2 && (plane_row + 1) * r.row + kTransposed <= r.plane;
    for (std::int64_t d = 0; d < r.numbers; ++d) {
      // z = t step + d - before lies in the row.
      const std::int64_t begin = std::max<std::int64_t>(0, (r.before - d + r.step - 1) / r.step);
      const std::int64_t end = std::min(r.row, (r.row_cells - 1 - d + r.before) / r.step + 1);
      if (begin >= end || r.row_cells - 1 - d + r.before < 0) continue;
      const RowPart part{image + y * r.row_stride + (begin * r.step + d - r.before) * r.cell_stride,
                         planes + d * r.number_stride + plane_row * r.row + begin, end - begin};
      if (in_vectors) {
        cells_to_planes({part.count, r.channels, r.step * r.cell_stride, r.plane}, part.cells,
                        part.numbers);
      } else {
        copy_cell_by_cell(r, part);
      }
    }
  }
}

}  // namespace troupe::model::cpu
