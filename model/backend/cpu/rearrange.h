#pragma once

// Images as planes: channels apart, rows of z one after the other (plane_vectors.h).

#include <cstdint>

#include "model/backend/cpu/plane_vectors.h"

namespace troupe::model::cpu {

// `positions` rounded up to whole lanes of so many each.
constexpr std::int64_t whole_lanes(std::int64_t positions, std::int64_t in_lane = 1) {
  const std::int64_t whole = kPositionLanes * in_lane;
  return (positions + whole - 1) / whole * whole;
}

// How one x plane (y, z, channels) of an image becomes planes [number][channel][position]. Number d
// of the position at place t of a row is the cell z = t step + d - before. Images of several
// samples may stand side by side: sample s at place t of row y has position (y row + t) places + s.
struct Rearrangement {
  std::int64_t rows = 0, row_cells = 0, channels = 0;  // of the image: y, z
  std::int64_t row_stride = 0, cell_stride = 0;        // in floats; channels are neighbours
  std::int64_t first_row = 0, plane_rows = 0;  // where y = 0 goes, and how many rows there are
  std::int64_t before = 0;
  std::int64_t numbers = 1, step = 1;
  std::int64_t row = 0, plane = 0;  // positions of a sample in a row, of all in a plane
  std::int64_t number_stride = 0;   // floats from the planes of a number to those of the next
  std::int64_t samples = 1, sample_stride = 0;  // of the images, the stride in floats
  std::int64_t places = 1;                      // for samples, `samples` or more
};
// Positions that no cell reaches become zero, cells that reach no position are left out.
void rearrange(const Rearrangement& r, const float* image, float* planes);

}  // namespace troupe::model::cpu
