#pragma once

// Sizes of our own convolutions (plane_convolution.h): how an image becomes planes. Pure.

#include <cstdint>

#include "model/backend.h"
#include "model/backend/cpu/bfloat16.h"
#include "model/backend/cpu/winograd.h"
#include "model/operation.h"

namespace troupe::model::cpu {

inline std::int64_t cells(const Extent& extent) { return extent[0] * extent[1] * extent[2]; }

// An image of spatial rank 2 is the same memory with its axes moved to y and z, where rows are
// long.
ConvolutionGeometry with_long_rows(ConvolutionGeometry geometry);

// What planes are made of: floats, or bfloat16, of which two channels (Bfloat16Pair) or two
// neighbouring positions (Bfloat16) fill the lane of a float.
template <class Element>
struct PlaneFormat {
  static constexpr int kPoints = kEightPoints;  // of tiles
  static constexpr std::int64_t kChannels = 1;  // of an element
  static constexpr std::int64_t kInLane = 1;    // elements in a lane
};
template <>
struct PlaneFormat<Bfloat16Pair> {
  static constexpr int kPoints = kSevenPoints;
  static constexpr std::int64_t kChannels = 2;
  static constexpr std::int64_t kInLane = 1;
};
template <>
struct PlaneFormat<Bfloat16> {
  static constexpr int kPoints = kSevenPoints;
  static constexpr std::int64_t kChannels = 1;
  static constexpr std::int64_t kInLane = 2;
};

// One channel has nothing to be paired with, and stays float.
inline bool in_pairs(Precision precision, std::int64_t channels) {
  return precision == Precision::kBf16 && channels > 1;
}

// How rows of z become positions.
struct Tiling {
  std::int64_t points = 1;     // planes for each channel
  std::int64_t outputs = 1;    // cells of the output in one position
  std::int64_t row = 0;        // positions in a row
  std::int64_t taps_in_z = 1;  // taps that are places in a plane; with tiles none are
  // Where that makes fewer products the taps are parts with as many each, and every part has
  // channels of its own: the image from as many cells further on.
  std::int64_t parts = 1, taps_of_part = 1;
  std::int64_t positions = 0;  // of an output plane, rounded up
  std::int64_t plane = 0;      // of one channel of an input plane

  bool tiles() const { return points > 1; }
};
// With tiles of so many points; planes fill lanes of so many elements.
Tiling tiling_of(const ConvolutionGeometry& geometry, int points, std::int64_t in_lane);
template <class Element>
Tiling tiling_of(const ConvolutionGeometry& geometry) {
  return tiling_of(geometry, PlaneFormat<Element>::kPoints, PlaneFormat<Element>::kInLane);
}

// The taps along x that lie inside the image for one output plane.
struct TapRange {
  std::int64_t begin, end;
};
TapRange taps_inside(const ConvolutionGeometry& geometry, std::int64_t ox);
// Of all output planes of a sample together.
std::int64_t all_taps_inside(const ConvolutionGeometry& geometry);

}  // namespace troupe::model::cpu
