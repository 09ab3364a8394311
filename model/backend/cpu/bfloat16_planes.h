#pragma once

// Planes of floats to planes of bfloat16 (bfloat16.h), evaluated at the points of tiles where there
// are any: what plane_transforms.h does in place for floats. Through Highway as plane_vectors.h,
// and under its condition; the bits do not depend on the width of vectors.

#include <cstdint>

#include "model/backend/cpu/bfloat16.h"

namespace troupe::model::cpu {

struct PlaneSizes {
  bool tiles = false;  // seven numbers become values at seven points; else one stays one
  std::int64_t channels = 0;
  std::int64_t plane = 0;  // positions, a multiple of kPositionLanes
};

// From [number][channel][position], by B^T of seven points (winograd.h), to [point][pair of
// channels][position]; an odd channel's partner is zero.
void inputs_to(const PlaneSizes& sizes, const float* numbers, Bfloat16Pair* pairs);
// To [point][channel][position].
void inputs_to(const PlaneSizes& sizes, const float* numbers, Bfloat16* values);
// By A of seven points: of `outputs` numbers with tiles.
void derivatives_to(const PlaneSizes& sizes, int outputs, const float* numbers, Bfloat16* values);

// A^T: sums at seven points, `stride` floats apart and `count` of each, become `outputs` sums in
// place. Rounding to eight bits is never taken for zero.
void restore_outputs_of_seven(float* sums, std::int64_t stride, std::int64_t count, int outputs);

}  // namespace troupe::model::cpu
