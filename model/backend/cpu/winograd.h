#pragma once

// Winograd's minimal filtering along one axis: m = 9 - r neighbouring outputs of a filter with r
// taps from eight products instead of m r. Eight inputs d and the taps g are evaluated as
// polynomials at eight points, multiplied point by point, and the products interpolated:
//   y = A^T ((G g) * (B^T d)),   y_j = sum over k of d_(j + k) g_k
// and, since that is linear in g, the gradient of the taps is G^T ((A dy) * (B^T d)).
// Points 0, 1, -1, 2, -2, 1/2, -1/2 and infinity, as in S. Winograd, Arithmetic Complexity of
// Computations (1980), and A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks
// (2016), with the rows of B^T as there. All entries of A and B^T are exact in float.
//
// Rounding is some ten times that of the plain sum: tests/model/winograd_test.cpp bounds it.
// An output whose own inputs are all zero has the rounding of its tile; restore_outputs()
// (plane_transforms.h) takes it for zero.

#include <array>
#include <cstddef>

namespace troupe::model::cpu {

inline constexpr int kPoints = 8;
inline constexpr int kFewestTaps = 3, kMostTaps = 7;

// Of kFewestTaps to kMostTaps taps.
constexpr int tile_outputs(int taps) { return kPoints + 1 - taps; }

using PointRow = std::array<double, kPoints>;
// G: [tap][point].
std::array<PointRow, kMostTaps> tap_transform(int taps);
// A: [output][point], for tile_outputs(taps) of them.
std::array<PointRow, kPoints> output_transform(int taps);
// B^T: [point][input].
std::array<PointRow, kPoints> input_transform();

}  // namespace troupe::model::cpu
