#pragma once

// Winograd's minimal filtering along one axis: m = n + 1 - r neighbouring outputs of a filter with
// r taps from n products instead of m r. n inputs d and the taps g are evaluated as polynomials at
// n points, multiplied point by point, and the products interpolated:
//   y = A^T ((G g) * (B^T d)),   y_j = sum over k of d_(j + k) g_k
// and, since that is linear in g, the gradient of the taps is G^T ((A dy) * (B^T d)).
// As in S. Winograd, Arithmetic Complexity of Computations (1980), and A. Lavin and S. Gray, Fast
// Algorithms for Convolutional Neural Networks (2016). All entries of A and B^T are exact in float.
//
// The eight points are 0, 1, -1, 2, -2, 1/2, -1/2 and infinity, with the rows of B^T as Lavin and
// Gray have them. In float, rounding is some ten times that of the plain sum. An output whose own
// inputs are all zero has the rounding of its tile; restore_outputs() (plane_transforms.h) takes it
// for zero. Where values at the points are rounded to bfloat16, rounding is four to five times that
// of the plain sum of such products, by the expected squares: no other eight of 0, infinity and
// multiples of 1/8 up to 4 in pairs have less for five taps. tests/model/winograd_test.cpp bounds
// both.

#include <array>
#include <cstddef>

namespace troupe::model::cpu {

inline constexpr int kPoints = 8;
inline constexpr int kFewestTaps = 3, kMostTaps = 7;

// For kFewestTaps to kMostTaps.
constexpr int tile_outputs(int taps) { return kPoints + 1 - taps; }

// The points in the order of the matrices.
using PointRow = std::array<double, kPoints>;
// G: [tap][point].
std::array<PointRow, kMostTaps> tap_transform(int taps);
// A: [output][point], for tile_outputs() of them.
std::array<PointRow, kPoints> output_transform(int taps);
// B^T: [point][input].
std::array<PointRow, kPoints> input_transform();

}  // namespace troupe::model::cpu
