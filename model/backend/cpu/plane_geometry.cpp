#include "model/backend/cpu/plane_geometry.h"

#include <algorithm>

#include "model/backend/cpu/rearrange.h"

namespace troupe::model::cpu {

namespace {

// A plane of so many positions is computed in full vectors, and more samples beside it save no
// time.
constexpr std::int64_t kManyPositions = 64;
// So many positions of all samples are enough.
constexpr std::int64_t kEnoughPositions = 96;
// Fewer samples are moved to their places one by one, which pays for the smallest images alone.
constexpr std::int64_t kFewestSamples = 4, kMostSamples = 16, kSmallestImages = 16;

void set_positions(const ConvolutionGeometry& g, std::int64_t in_lane, Tiling& tiling) {
  const std::int64_t farthest = (g.kernel[1] - 1) * tiling.row + tiling.taps_in_z - 1;
  tiling.positions = whole_lanes(g.out[1] * tiling.row_stride(), in_lane);
  tiling.plane = whole_lanes(tiling.positions + farthest * tiling.samples, in_lane);
}

}  // namespace

ConvolutionGeometry with_long_rows(ConvolutionGeometry g) {
  if (g.in[2] != 1 || g.out[2] != 1 || g.kernel[2] != 1) return g;
  for (Extent* e : {&g.in, &g.out, &g.kernel, &g.upsample, &g.phases, &g.whole_phases}) {
    *e = {1, (*e)[0], (*e)[1]};
  }
  for (Extent* e : {&g.pad_before, &g.pad_after}) *e = {0, (*e)[0], (*e)[1]};
  return g;
}

Tiling tiling_of(const ConvolutionGeometry& g, std::int64_t in_lane) {
  const std::int64_t taps = g.kernel[2], cells = g.out[2] + taps - 1;
  Tiling best{.row = cells, .taps_in_z = taps};
  // Products of a row. Tiles must save a fifth, because their transforms cost about that.
  std::int64_t least = 4 * cells * taps / 5;
  for (std::int64_t parts = 1; taps / parts >= kFewestTaps; ++parts) {
    if (taps % parts != 0 || taps / parts > kMostTaps) continue;
    const std::int64_t outputs = tile_outputs(static_cast<int>(taps / parts));
    const std::int64_t tiles = (g.out[2] + outputs - 1) / outputs;
    const std::int64_t products = tiles * kPoints * parts;
    if (products > least || (best.tiles() && products == least)) continue;
    least = products;
    best = {.points = kPoints,
            .outputs = outputs,
            .row = tiles,
            .parts = parts,
            .taps_of_part = taps / parts};
  }
  set_positions(g, in_lane, best);
  return best;
}

Tiling side_by_side(const ConvolutionGeometry& g, const Tiling& tiling) {
  const std::int64_t positions = g.out[1] * tiling.row;
  if (positions > kManyPositions) return tiling;
  Tiling all = tiling;
  all.samples = kFewestSamples;
  while (all.samples < kMostSamples && all.samples * positions < kEnoughPositions) {
    all.samples *= 2;
  }
  all.samples = std::min(all.samples, (g.batch + 1) / 2);  // something for two threads
  if (all.samples < kFewestSamples && positions > kSmallestImages) return tiling;
  set_positions(g, 1, all);
  return all;
}

std::int64_t shares_of(std::int64_t batch, std::int64_t samples) {
  return (batch + samples - 1) / samples;
}

Samples share_of(std::int64_t batch, std::int64_t samples, std::int64_t share) {
  const std::int64_t shares = shares_of(batch, samples), first = batch * share / shares;
  return {first, batch * (share + 1) / shares - first};
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
