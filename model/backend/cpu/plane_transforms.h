#pragma once

// From cells to planes and back: what our convolutions do before and after their products
// (plane_convolution.h). Through Highway as plane_vectors.h, and under its condition; the bits do
// not depend on the width of vectors.

#include <array>
#include <cstdint>

#include "model/backend/cpu/winograd.h"
#include "model/network.h"

namespace troupe::model::cpu {

// Winograd's transforms (winograd.h) of `count` numbers each, in place: planes[k][i] for k < 8
// stand `stride` floats apart. `count` must be a multiple of kPositionLanes. B^T: eight inputs
// become eight values at the points.
void transform_inputs(float* planes, std::int64_t stride, std::int64_t count);
// A: `outputs` derivatives become eight values at the points.
void transform_derivatives(float* planes, std::int64_t stride, std::int64_t count, int outputs);
// A^T: eight products become `outputs` sums. A sum that is less than a millionth (2^-20) of the
// numbers it is the difference of is rounding, and becomes zero. Showers are mostly empty, so an
// output whose inputs are all zero is zero, as it is without tiles. Otherwise rounding would choose
// the side of the activation's kink at the zero biases that training begins with.
void restore_outputs(float* planes, std::int64_t stride, std::int64_t count, int outputs);

// to[k to_stride + i] = sum over j < from_rows, ascending, of weights[k][j] from[j from_stride +
// i], in double and rounded once, for k < to_rows and i < count: the transforms of kernels.
struct WeighedRows {
  std::array<PointRow, kPoints> weights;
  std::int64_t from_rows = 0, from_stride = 0, to_rows = 0, to_stride = 0;
  std::int64_t count = 0;
};
void add_weighed(const WeighedRows& rows, const float* from, float* to);

// planes[c plane_stride + t] = cells[t cell_stride + c] for t < count. Numbers behind them up to
// the next multiple of kTransposed become zero, or stay.
inline constexpr std::int64_t kTransposed = 8;
struct CellsAndPlanes {
  std::int64_t count = 0, channels = 0, cell_stride = 0, plane_stride = 0;
};
void cells_to_planes(const CellsAndPlanes& sizes, const float* cells, float* planes);
// The way back, for t < count alone; planes are read up to the next multiple of kTransposed.
void planes_to_cells(const CellsAndPlanes& sizes, const float* planes, float* cells);

// One x plane of an image from planes of its channels, `plane_stride` floats apart. Position y row
// + t holds the cell (y, t step + first) of `rows` rows of `row_cells` cells; positions of cells
// behind a row's last one are left out. Planes are read up to the next multiple of kTransposed. A
// cell becomes activation(value + bias[channel]), as by finish_plane(). `biases` null: all are
// zero.
struct FinishedPlane {
  std::int64_t rows = 0, row_cells = 0, channels = 0;
  std::int64_t row = 0, step = 1, first = 0;
  std::int64_t plane_stride = 0;
  const float* biases = nullptr;
  Activation activation;
};
void finish_cells(const FinishedPlane& plane, const float* planes, float* image);

// values[i] = activation(values[i] + bias). kLinear, kRelu, kLeakyRelu; NaN stays NaN.
void finish_plane(float* values, std::int64_t count, float bias, const Activation& activation);

}  // namespace troupe::model::cpu
