#pragma once

// Sizes of our own convolutions (plane_convolution.h): how an image becomes planes. Pure.

#include <cstdint>

#include "model/operation.h"

namespace troupe::model::cpu {

inline std::int64_t cells(const Extent& extent) { return extent[0] * extent[1] * extent[2]; }

// An image of spatial rank 2 is the same memory with its axes moved to y and z, where rows are
// long.
ConvolutionGeometry with_long_rows(ConvolutionGeometry geometry);

// How rows of z become positions.
struct Tiling {
  std::int64_t points = 1;     // planes for each channel
  std::int64_t outputs = 1;    // cells of the output in one position
  std::int64_t row = 0;        // positions in a row
  std::int64_t taps_in_z = 1;  // taps that are places in a plane; with tiles none are
  // With more taps than tiles can have these are parts with as many taps each, and every part has
  // channels of its own: the image from as many cells further on.
  std::int64_t parts = 1, taps_of_part = 1;
  std::int64_t positions = 0;  // of an output plane, rounded up
  std::int64_t plane = 0;      // numbers of one channel of an input plane

  bool tiles() const { return points > 1; }
};
Tiling tiling_of(const ConvolutionGeometry& geometry);

// The taps along x that lie inside the image for one output plane.
struct TapRange {
  std::int64_t begin, end;
};
TapRange taps_inside(const ConvolutionGeometry& geometry, std::int64_t ox);
// Of all output planes of a sample together.
std::int64_t all_taps_inside(const ConvolutionGeometry& geometry);

}  // namespace troupe::model::cpu
