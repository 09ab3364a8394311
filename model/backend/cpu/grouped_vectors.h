#pragma once

// The inner loops of convolutions in groups (grouped_convolution.h), with lanes over the channels
// of a cell. Through Highway as plane_vectors.h, and under its condition. Every element is
// one chain of multiplications and additions, of which none is fused in float, so the bits do not
// depend on the width of vectors. Products in double are exact, so that fusing them changes
// nothing.

#include <cstdint>
#include <span>

namespace troupe::model::cpu {

// Channels of a cell come in multiples of this.
inline constexpr std::int64_t kChannelLanes = 16;

// A cell of an image whose groups have been spread: for every j, the channel j of its group for
// each channel of the other image, rounded up to kChannelLanes. Memory behind the last cell, as
// many floats as kChannelLanes, may be written too.
struct SpreadCells {
  std::int64_t groups = 1, of_group = 1;  // channels of a group that are spread
  std::int64_t to_group = 1;              // channels of a group that see them
  std::int64_t channels = 0;              // groups x to_group, rounded up
};
void spread_cells(const SpreadCells& spread, const float* cells, std::int64_t count, float* to);

// to[z][c] = sum over pairs p, taps k, channels j, all ascending, of
//   rows[p][places[k][z] + j channels + c] weights[p][(k depth + j) channels + c],
// plus bias[c] if there is one. In each cell of `to` real_channels are written.
struct GroupedRow {
  std::span<const float*const> rows, weights;
  const std::int64_t* places = nullptr;  // [tap][cell]
  std::int64_t taps = 0, cells = 0, depth = 0;
  std::int64_t channels = 0, real_channels = 0;
  const float* bias = nullptr;
  float* to = nullptr;
};
void sum_row(const GroupedRow& row);

// sums[j][c] += sum over z < cells, ascending, of row[places[z] + j channels + c] dy[z][c], in
// double, for c < real_channels, of which `dy` has as many in a cell.
struct GroupedProducts {
  const float *row = nullptr, *dy = nullptr;
  std::span<const std::int64_t> places;
  std::int64_t depth = 0, channels = 0, real_channels = 0;
  double* sums = nullptr;
};
void add_products(const GroupedProducts& products);

}  // namespace troupe::model::cpu
