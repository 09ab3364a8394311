#pragma once

// The sums of plane_dots.h with lanes over outputs: the same bits, in less time where planes have
// few positions. Sixteen lanes of positions are then most of the work, as they have to be added in
// the end. Under the condition of plane_vectors.h.

#include <cstdint>
#include <span>

#include "model/backend/cpu/bfloat16.h"

namespace troupe::model::cpu {

// `right` of PlaneDots with outputs as neighbours. A word is what fills a lane: a float, or
// bfloat16 of neighbouring positions. Word w of output o stands at right[p][w right_stride + o];
// all words behind `words` are zero. Outputs are read up to a multiple of kPositionLanes.
//
// Pairs of planes come in groups, of which `ends` has the ends. Sums are those of one call of
// add_plane_dots for each group, one after the other; none may be -0 before, and none becomes it.
template <class Element>
struct ChannelDots {
  std::span<const Element* const> left;
  std::span<const float* const> right;
  std::span<const std::size_t> ends;
  std::span<const std::int64_t> rows;
  std::int64_t outputs = 0, right_stride = 0;
  std::int64_t words = 0;
  float* sums = nullptr;
  std::int64_t sums_stride = 0;
};
void add_channel_dots(const ChannelDots<float>& dots);
void add_channel_dots(const ChannelDots<Bfloat16>& dots);

}  // namespace troupe::model::cpu
