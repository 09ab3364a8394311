#pragma once

// Planes of bfloat16 straight from the cells of an image: rearrange() and then inputs_to() or
// derivatives_to() (bfloat16_planes.h) in one step and to the same bits, without the planes of
// floats between them. Numbers of a tile are transformed while their channels stand side by side,
// and change places when they are rounded to half as many bytes. Through Highway as
// plane_vectors.h, and under its condition.

#include <cstdint>

#include "model/backend/cpu/bfloat16.h"
#include "model/backend/cpu/rearrange.h"

namespace troupe::model::cpu {

// True where it takes less time, for tiles of images of so many channels: fewer leave most of a
// vector empty.
constexpr bool prefers_cells(std::int64_t channels) { return channels > 2; }

// One x plane. `cells` says which kPoints cells are the numbers of a tile, which stands at a
// position; samples do not stand side by side. Planes of a point are `point_stride` elements from
// those of the next one, and those of channels follow each other.
//
// To [point][pair of channels][position] by B^T; an odd channel's partner is zero.
void cells_to(const Rearrangement& cells, const float* image, std::int64_t point_stride,
              Bfloat16Pair* pairs);
// The same to two planes for each pair of channels, the second one's first.
void cells_to(const Rearrangement& cells, const float* image, std::int64_t point_stride,
              RoundedFloat* planes);
// To [point][channel][position]; planes have a multiple of twice kPositionLanes.
void cells_to(const Rearrangement& cells, const float* image, std::int64_t point_stride,
              Bfloat16* values);
// The same by A, of derivatives of a tile's outputs: `cells` has two to six of them.
void derivative_cells_to(const Rearrangement& cells, const float* image, std::int64_t point_stride,
                         Bfloat16* values);

}  // namespace troupe::model::cpu
