#include "model/backend/cpu/rearrange.h"

#include <algorithm>

#include <hwy/cache_control.h>

#include "model/backend/cpu/plane_transforms.h"
#include "runtime/base/error.h"

namespace troupe::model::cpu {

namespace {

constexpr std::int64_t kRowsAhead = 2;
// So few are moved faster one by one.
constexpr std::int64_t kFewChannels = 2;

// Numbers d of neighbouring positions: of a row, or of a place in the rows of samples side by side.
struct Run {
  const float* cells;  // of the first position
  std::int64_t cell_stride;
  float* numbers;  // of the first channel
  std::int64_t count;
};

void copy_cell_by_cell(const Rearrangement& r, const Run& run) {
  for (std::int64_t t = 0; t < run.count; ++t) {
    const float* cell = run.cells + t * run.cell_stride;
    for (std::int64_t c = 0; c < r.channels; ++c) run.numbers[c * r.plane + t] = cell[c];
  }
}

// Zeros behind the run may be written where `goes_on`.
void copy_run(const Rearrangement& r, bool goes_on, const Run& run) {
  const std::int64_t in_vectors = goes_on ? run.count : run.count / kTransposed * kTransposed;
  if (r.channels <= kFewChannels || in_vectors == 0) return copy_cell_by_cell(r, run);
  cells_to_planes({in_vectors, r.channels, run.cell_stride, r.plane}, run.cells, run.numbers);
  copy_cell_by_cell(r, {run.cells + in_vectors * run.cell_stride, run.cell_stride,
                        run.numbers + in_vectors, run.count - in_vectors});
}

// Images are larger than the nearer caches, and numbers read a row in steps that no prefetcher of a
// processor foresees.
void fetch_row(const Rearrangement& r, const float* row) {
  constexpr std::int64_t kLine = 64 / sizeof(float);
  for (std::int64_t i = 0; i < r.row_stride; i += kLine) hwy::Prefetch(row + i);
}

// Rows of one position, of one sample: they are neighbours.
void copy_columns(const Rearrangement& r, const float* image, float* planes) {
  const std::int64_t begin = std::max<std::int64_t>(0, -r.first_row);
  const std::int64_t count = std::min(r.rows, r.plane_rows - r.first_row) - begin;
  const std::int64_t place = begin + r.first_row;
  for (std::int64_t d = 0; d < r.numbers && count > 0; ++d) {
    const std::int64_t z = d - r.before;
    if (z < 0 || z >= r.row_cells) continue;
    copy_run(r, place + count + kTransposed <= r.plane,
             {image + begin * r.row_stride + z * r.cell_stride, r.row_stride,
              planes + d * r.number_stride + place, count});
  }
}

}  // namespace

void rearrange(const Rearrangement& r, const float* image, float* planes) {
  CHECK(r.numbers == 1 || r.number_stride > 0, "where are the other numbers?");
  for (std::int64_t d = 0; d < r.numbers; ++d) {
    std::fill_n(planes + d * r.number_stride, r.channels * r.plane, 0.0f);
  }
  if (r.row == 1 && r.places == 1) return copy_columns(r, image, planes);
  for (std::int64_t y = 0; y < r.rows; ++y) {
    if (y + kRowsAhead < r.rows) fetch_row(r, image + (y + kRowsAhead) * r.row_stride);
    const std::int64_t plane_row = y + r.first_row;
    if (plane_row < 0 || plane_row >= r.plane_rows) continue;
    // Zeros behind a run fall on the next run, which is written later, or on its zeros.
    const bool goes_on = (plane_row + 1) * r.row * r.places + kTransposed <= r.plane;
    for (std::int64_t d = 0; d < r.numbers; ++d) {
      // z = t step + d - before lies in the row.
      const std::int64_t begin = std::max<std::int64_t>(0, (r.before - d + r.step - 1) / r.step);
      const std::int64_t end = std::min(r.row, (r.row_cells - 1 - d + r.before) / r.step + 1);
      if (begin >= end || r.row_cells - 1 - d + r.before < 0) continue;
      const float* cells =
          image + y * r.row_stride + (begin * r.step + d - r.before) * r.cell_stride;
      float* numbers = planes + d * r.number_stride + (plane_row * r.row + begin) * r.places;
      const std::int64_t step = r.step * r.cell_stride;
      if (r.places == 1) {
        copy_run(r, goes_on, {cells, step, numbers, end - begin});
        continue;
      }
      for (std::int64_t t = begin; t < end; ++t, cells += step, numbers += r.places) {
        copy_run(r, goes_on, {cells, r.sample_stride, numbers, r.samples});
      }
    }
  }
}

}  // namespace troupe::model::cpu
