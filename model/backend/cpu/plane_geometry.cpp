#include "model/backend/cpu/plane_geometry.h"

#include <algorithm>

#include "model/backend/cpu/rearrange.h"
#include "model/backend/cpu/winograd.h"

namespace troupe::model::cpu {

ConvolutionGeometry with_long_rows(ConvolutionGeometry g) {
  if (g.in[2] != 1 || g.out[2] != 1 || g.kernel[2] != 1) return g;
  for (Extent* e : {&g.in, &g.out, &g.kernel, &g.upsample}) *e = {1, (*e)[0], (*e)[1]};
  for (Extent* e : {&g.pad_before, &g.pad_after}) *e = {0, (*e)[0], (*e)[1]};
  return g;
}

namespace {

Tiling with_sizes(Tiling tiling, const ConvolutionGeometry& g) {
  tiling.positions = whole_lanes(g.out[1] * tiling.row);
  tiling.plane =
      whole_lanes(tiling.positions + (g.kernel[1] - 1) * tiling.row + tiling.taps_in_z - 1);
  return tiling;
}

Tiling without_tiles(const ConvolutionGeometry& g) {
  return with_sizes({.row = g.out[2] + g.kernel[2] - 1, .taps_in_z = g.kernel[2]}, g);
}

}  // namespace

Tiling tiling_of(const ConvolutionGeometry& g) {
  const std::int64_t taps = g.kernel[2], cells = g.out[2] + taps - 1;
  std::int64_t parts = 1;
  while (parts < taps && (taps % parts != 0 || taps / parts > kMostTaps)) ++parts;
  const std::int64_t of_part = taps / parts;
  if (of_part < kFewestTaps) return without_tiles(g);
  const std::int64_t outputs = tile_outputs(static_cast<int>(of_part));
  const std::int64_t tiles = (g.out[2] + outputs - 1) / outputs;
  // Above that the transforms cost what the products save.
  if (5 * tiles * kPoints * parts > 4 * cells * taps) return without_tiles(g);
  return with_sizes({.points = kPoints,
                     .outputs = outputs,
                     .row = tiles,
                     .parts = parts,
                     .taps_of_part = of_part},
                    g);
}

TapRange taps_inside(const ConvolutionGeometry& g, std::int64_t ox) {
  const std::int64_t shift = ox - g.pad_before[0];
  const std::int64_t begin = std::clamp<std::int64_t>(-shift, 0, g.kernel[0]);
  return {begin, std::max(begin, std::min(g.kernel[0], g.in[0] - shift))};
}

std::int64_t all_taps_inside(const ConvolutionGeometry& g) {
  std::int64_t taps = 0;
  for (std::int64_t ox = 0; ox < g.out[0]; ++ox) {
    const TapRange inside = taps_inside(g, ox);
    taps += inside.end - inside.begin;
  }
  return taps;
}

}  // namespace troupe::model::cpu
