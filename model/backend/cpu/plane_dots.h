#pragma once

// Sums of products over the positions of two planes: the derivatives of a kernel. As
// plane_vectors.h says, and under its condition.

#include <cstdint>
#include <span>

#include "model/backend/cpu/bfloat16.h"

namespace troupe::model::cpu {

// Where a row begins in the planes of `left`, and where its sums stand.
struct DotRow {
  std::int64_t place = 0, sums = 0;
};
// For each row, sums[row.sums + o] += sum over pairs of planes p, ascending, and positions q of
//   left[p][row.place + q] right[p][o right_stride + q].
// Element is float or Bfloat16: of these, neighbouring positions 2 i and 2 i + 1 are a pair, and
// lanes are i modulo 16.
template <class Element>
struct PlaneDots {
  std::span<const Element*const> left, right;
  std::span<const DotRow> rows;
  std::int64_t outputs = 0, right_stride = 0;
  std::int64_t positions = 0;  // a multiple of kPositionLanes, of bfloat16 of twice that
  float* sums = nullptr;
};
void add_plane_dots(const PlaneDots<float>& dots);
void add_plane_dots(const PlaneDots<Bfloat16>& dots);

}  // namespace troupe::model::cpu
