#include "model/backend/cpu/plane_geometry.h"

#include <algorithm>

#include "model/backend/cpu/rearrange.h"

namespace troupe::model::cpu {

ConvolutionGeometry with_long_rows(ConvolutionGeometry g) {
  if (g.in[2] != 1 || g.out[2] != 1 || g.kernel[2] != 1) return g;
  for (Extent* e : {&g.in, &g.out, &g.kernel, &g.upsample}) *e = {1, (*e)[0], (*e)[1]};
  for (Extent* e : {&g.pad_before, &g.pad_after}) *e = {0, (*e)[0], (*e)[1]};
  return g;
}

Tiling tiling_of(const ConvolutionGeometry& g, int points, std::int64_t in_lane) {
  const std::int64_t taps = g.kernel[2], cells = g.out[2] + taps - 1;
  Tiling best{.row = cells, .taps_in_z = taps};
  // Products of a row. Tiles must save a fifth, because their transforms cost about that.
  std::int64_t least = 4 * cells * taps / 5;
  for (std::int64_t parts = 1; taps / parts >= kFewestTaps; ++parts) {
    if (taps % parts != 0 || taps / parts >= points) continue;
    const std::int64_t outputs = tile_outputs(points, static_cast<int>(taps / parts));
    const std::int64_t tiles = (g.out[2] + outputs - 1) / outputs;
    const std::int64_t products = tiles * points * parts;
    if (products > least || (best.tiles() && products == least)) continue;
    least = products;
    best = {.points = points,
            .outputs = outputs,
            .row = tiles,
            .parts = parts,
            .taps_of_part = taps / parts};
  }
  best.positions = whole_lanes(g.out[1] * best.row, in_lane);
  best.plane =
      whole_lanes(best.positions + (g.kernel[1] - 1) * best.row + best.taps_in_z - 1, in_lane);
  return best;
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
