#pragma once

// The sums of plane_dots.h with lanes over outputs: the same bits, in less time where planes have
// few positions. Sixteen lanes of positions are then most of the work, as they have to be added in
// the end. Under the condition of plane_vectors.h.

#include <cstdint>
#include <span>

#include "model/backend/cpu/bfloat16.h"
#include "model/backend/cpu/plane_dots.h"

namespace troupe::model::cpu {

// A word of two planes: what fills a lane, which is a float, or bfloat16 of neighbouring positions.
template <class Element>
struct DotWord {
  const Element* left;
  const float* right;  // of the first output
};
// `right` of PlaneDots with outputs as neighbours. Word w of output o stands at
// right[p][w right_stride + o]. In each `row_words` of them those behind the first `used_words` are
// zero, and so are all behind `words`. Outputs are read up to a multiple of kPositionLanes.
//
// Pairs of planes come in groups, kMostGroups at most, of which `ends` has the ends. Sums are those
// of one call of add_plane_dots for each group, one after the other; none may be -0 before, and
// none becomes it.
template <class Element>
struct ChannelDots {
  static constexpr std::size_t kMostGroups = 4;

  std::span<const Element* const> left;
  std::span<const float* const> right;
  std::span<const std::size_t> ends;
  std::span<const DotRow> rows;
  std::int64_t outputs = 0, right_stride = 0;
  std::int64_t words = 0, row_words = 1, used_words = 1;
  DotWord<Element>* memory = nullptr;  // for the words of all pairs
  float* sums = nullptr;
};
void add_channel_dots(const ChannelDots<float>& dots);
void add_channel_dots(const ChannelDots<Bfloat16>& dots);

}  // namespace troupe::model::cpu
