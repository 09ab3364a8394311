#pragma once

// Sizes of our own convolutions (plane_convolution.h): how an image becomes planes. Pure.

#include <cstdint>

#include "model/backend.h"
#include "model/backend/cpu/bfloat16.h"
#include "model/backend/cpu/winograd.h"
#include "model/operation.h"

namespace troupe::model::cpu {

// An image of spatial rank 2 is the same memory with its axes moved to y and z, where rows are
// long.
ConvolutionGeometry with_long_rows(ConvolutionGeometry geometry);

// The elements of planes: floats, or numbers of bfloat16. Of these two channels (Bfloat16Pair), two
// neighbouring positions (Bfloat16) or a single one (RoundedFloat) fill the lane of a float.
template <class Element>
struct PlaneFormat {
  static constexpr std::int64_t kInPair = 1;    // channels of a pair, or 1
  static constexpr std::int64_t kChannels = 1;  // of an element
  static constexpr std::int64_t kInLane = 1;    // elements in a lane
};
template <>
struct PlaneFormat<Bfloat16Pair> {
  static constexpr std::int64_t kInPair = 2;
  static constexpr std::int64_t kChannels = 2;
  static constexpr std::int64_t kInLane = 1;
};
template <>
struct PlaneFormat<RoundedFloat> {
  static constexpr std::int64_t kInPair = 2;
  static constexpr std::int64_t kChannels = 1;
  static constexpr std::int64_t kInLane = 1;
};
template <>
struct PlaneFormat<Bfloat16> {
  static constexpr std::int64_t kInPair = 1;
  static constexpr std::int64_t kChannels = 1;
  static constexpr std::int64_t kInLane = 2;
};

// Elements of so many channels. A channel without a partner has zeros for one.
template <class Element>
constexpr std::int64_t elements_of(std::int64_t channels) {
  constexpr std::int64_t kInPair = PlaneFormat<Element>::kInPair;
  return (channels + kInPair - 1) / kInPair * (kInPair / PlaneFormat<Element>::kChannels);
}

// One channel has no partner, and stays float.
inline bool in_pairs(Precision precision, std::int64_t channels) {
  return precision == Precision::kBf16 && channels > 1;
}

// How rows of z become positions.
struct Tiling {
  std::int64_t points = 1;     // planes for each channel
  std::int64_t outputs = 1;    // cells of the output in one position
  std::int64_t row = 0;        // positions in a row
  std::int64_t taps_in_z = 1;  // taps that are places in a plane; with tiles none are
  // The taps are divided into equal parts where that makes fewer products. Every part has channels
  // of its own: the image shifted by the taps in front of the part.
  std::int64_t parts = 1, taps_of_part = 1;
  // Samples side by side in a plane: that many times the positions, one sample beside the other.
  std::int64_t samples = 1;
  std::int64_t positions = 0;  // of an output plane, rounded up
  std::int64_t plane = 0;      // of one channel of an input plane

  bool tiles() const { return points > 1; }
  // Positions from a row to the next one.
  std::int64_t row_stride() const { return row * samples; }
};
// Planes fill lanes of `in_lane` elements.
Tiling tiling_of(const ConvolutionGeometry& geometry, std::int64_t in_lane);
template <class Element>
Tiling tiling_of(const ConvolutionGeometry& geometry) {
  return tiling_of(geometry, PlaneFormat<Element>::kInLane);
}

// The same with so many samples side by side that small images fill vectors, too; at most half of
// the micro-batch.
Tiling side_by_side(const ConvolutionGeometry& geometry, const Tiling& tiling);

// Neighbouring samples of a micro-batch.
struct Samples {
  std::int64_t first = 0, count = 1;
};
// How many shares of so many samples at most a micro-batch has, and one of them; they are as equal
// as possible.
std::int64_t shares_of(std::int64_t batch, std::int64_t samples);
Samples share_of(std::int64_t batch, std::int64_t samples, std::int64_t share);

// The taps along x that lie inside the image for one output plane.
struct TapRange {
  std::int64_t begin, end;
};
TapRange taps_inside(const ConvolutionGeometry& geometry, std::int64_t ox);
// The taps along x of all output planes of a sample together.
std::int64_t all_taps_inside(const ConvolutionGeometry& geometry);

}  // namespace troupe::model::cpu
