#pragma once

// Planes of floats to planes of bfloat16 (bfloat16.h), evaluated at the points of tiles where there
// are any: what plane_transforms.h does in place for floats. Through Highway as plane_vectors.h,
// and under its condition; the bits do not depend on the width of vectors.

#include <cstdint>

#include "model/backend/cpu/bfloat16.h"

namespace troupe::model::cpu {

struct PlaneSizes {
  bool tiles = false;  // eight numbers become values at eight points; else one stays one
  std::int64_t channels = 0;
  std::int64_t plane = 0;  // positions, a multiple of kPositionLanes
};

// From [number][channel][position], by B^T (winograd.h), to [point][pair of
// channels][position]; an odd channel's partner is zero.
void inputs_to(const PlaneSizes& sizes, const float* numbers, Bfloat16Pair* pairs);
// The same to two planes for each pair of channels, the second one's first.
void inputs_to(const PlaneSizes& sizes, const float* numbers, RoundedFloat* planes);
// To [point][channel][position].
void inputs_to(const PlaneSizes& sizes, const float* numbers, Bfloat16* values);
// By A, of `outputs` numbers with tiles.
void derivatives_to(const PlaneSizes& sizes, int outputs, const float* numbers, Bfloat16* values);

// Rows of floats, `stride` floats apart, of any length: to [pair of rows][column], where an odd
// row's partner is zero.
void rows_to(std::int64_t rows, std::int64_t columns, std::int64_t stride, const float* from,
             Bfloat16Pair* pairs);
// The same to two rows for each pair, the second one's first.
void rows_to(std::int64_t rows, std::int64_t columns, std::int64_t stride, const float* from,
             RoundedFloat* planes);
// To [row][pair of columns], where an odd column's partner is zero.
void columns_to_pairs(std::int64_t rows, std::int64_t columns, const float* from,
                      Bfloat16Pair* pairs);

}  // namespace troupe::model::cpu
