#include "model/backend/cpu/channel_dots.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include <hwy/cache_control.h>

#include "model/backend/cpu/in_parts.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/float_environment.h"
#include "runtime/base/error.h"

// This file is compiled once for each kind of vector, as plane_vectors.cpp is.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#define HWY_WANT_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/backend/cpu/channel_dots.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

#include "model/backend/cpu/plane_arithmetic.inc"

// Rows and vectors of outputs of one block, which multiplies that many sums at once.
constexpr std::size_t kMostRows = kLanes >= 16 ? 4 : 2, kMostVectors = 2;

// The sums of a block: for each row, those of its vectors.
template <std::size_t kSums>
using Sums = std::array<Vector, kSums>;

// The words of a lane of positions, of all pairs of planes of a group.
template <class Element>
using LaneWords = std::span<const DotWord<Element>>;
template <class Element>
using GroupWords = std::array<LaneWords<Element>, kPositionLanes>;

template <class Arithmetic>
HWY_INLINE auto broadcast_word(const float* from) {
  return Arithmetic::broadcast(from);
}
template <class Arithmetic>
HWY_INLINE auto broadcast_word(const Bfloat16* from) {
  std::uint32_t word;
  std::memcpy(&word, from, sizeof(word));
  const auto pair = std::bit_cast<Bfloat16Pair>(word);
  return Arithmetic::broadcast(&pair);
}

template <class Arithmetic, std::size_t kRows, std::size_t kVectors, class Element>
HWY_INLINE Sums<kRows * kVectors> sum_of_lane(LaneWords<Element> words, const DotRow* rows,
                                              std::int64_t output) {
  Sums<kRows * kVectors> sums;
  for (Vector& sum : sums) sum = hn::Zero(Tag());
  for (const DotWord<Element>& word : words) {
    typename Arithmetic::Operand derivatives[kVectors];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v) {
      derivatives[v] = in_register(
          Arithmetic::load(word.right + output + static_cast<std::int64_t>(v) * kLanes));
    }
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kRows; ++r) {
      auto value = broadcast_word<Arithmetic>(word.left + rows[r].place);
      if constexpr (kVectors > 1) value = in_register(value);
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kVectors; ++v) {
        Vector& sum = sums[r * kVectors + v];
        sum = Arithmetic::multiply_add(value, derivatives[v], sum);
      }
    }
  }
  return sums;
}

// The sum of lanes kLane, kLane + kStep, ...: ((l + l+8) + (l+4 + l+12)) and so on. Those from
// kUsed on are zero and left out, which changes the sign of a zero at most.
template <int kUsed, int kLane, int kStep, class OfLane>
HWY_INLINE auto sum_of_lanes(const OfLane& of_lane) {
  if constexpr (kStep == kPositionLanes) {
    return of_lane(kLane);
  } else {
    auto sum = sum_of_lanes<kUsed, kLane, 2 * kStep>(of_lane);
    if constexpr (kLane + kStep < kUsed) {
      const auto other = sum_of_lanes<kUsed, kLane + kStep, 2 * kStep>(of_lane);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = hn::Add(sum[i], other[i]);
    }
    return sum;
  }
}

template <class Arithmetic, std::size_t kRows, std::size_t kVectors, int kUsed, class Element>
HWY_INLINE Sums<kRows * kVectors> sum_of_group(const GroupWords<Element>& words, const DotRow* rows,
                                               std::int64_t output) {
  const auto of_lane = [&](int lane) HWY_ATTR {
    return sum_of_lane<Arithmetic, kRows, kVectors>(words[static_cast<std::size_t>(lane)], rows,
                                                    output);
  };
  if constexpr (std::is_empty_v<typename Arithmetic::Environment>) {
    return sum_of_lanes<kUsed, 0, 1>(of_lane);
  } else {
    // Lanes are added outside of the environment of their products.
    std::array<Sums<kRows * kVectors>, kUsed> lanes;
    {
      const typename Arithmetic::Environment environment;
      for (int lane = 0; lane < kUsed; ++lane) {
        lanes[static_cast<std::size_t>(lane)] = of_lane(lane);
      }
    }
    return sum_of_lanes<kUsed, 0, 1>(
        [&](int lane) HWY_ATTR { return lanes[static_cast<std::size_t>(lane)]; });
  }
}

// The words of all groups, lane by lane. Few rows take little longer to multiply than their words
// to list.
template <class Element>
struct WordLists {
  std::array<GroupWords<Element>, ChannelDots<Element>::kMostGroups> groups;

  template <class Arithmetic>
  void list(const ChannelDots<Element>& p) {
    DotWord<Element>* to = p.memory;
    std::size_t begin = 0;
    for (std::size_t group = 0; group < p.ends.size(); begin = p.ends[group++]) {
      for (std::int64_t lane = 0; lane < kPositionLanes; ++lane) {
        const DotWord<Element>* first = to;
        for (std::size_t pair = begin; pair < p.ends[group]; ++pair) {
          to = append<Arithmetic>(p, pair, lane, to);
        }
        groups[group][static_cast<std::size_t>(lane)] = {first, to};
      }
    }
  }

 private:
  template <class Arithmetic>
  static DotWord<Element>* append(const ChannelDots<Element>& p, std::size_t pair,
                                  std::int64_t lane, DotWord<Element>* to) {
    const Element* left = p.left[pair] + lane * Arithmetic::kInLane;
    const float* right = p.right[pair] + lane * p.right_stride;
    const std::int64_t right_step = kPositionLanes * p.right_stride;
    std::int64_t place = 0;  // in a row
    if (p.used_words < p.row_words) place = lane % p.row_words;
    for (std::int64_t word = lane; word < p.words; word += kPositionLanes) {
      if (place < p.used_words) *to++ = {left, right};
      left += kPositionLanes * Arithmetic::kInLane;
      right += right_step;
      if (p.used_words < p.row_words) place = (place + kPositionLanes) % p.row_words;
    }
    return to;
  }
};

template <class Arithmetic, class Element, std::size_t kRows, std::size_t kVectors, int kUsed>
HWY_NOINLINE void add_block(const ChannelDots<Element>& p, const WordLists<Element>& words,
                            const DotRow* rows, std::int64_t output) {
  const Tag tag;
  const auto outputs = static_cast<std::size_t>(p.outputs - output);
  const auto mask_of = [&](std::size_t v) HWY_ATTR {
    return hn::FirstN(tag, std::min<std::size_t>(kLanes, outputs - v * kLanes));
  };
  const auto place_of = [&](std::size_t r, std::size_t v) {
    return p.sums + rows[r].sums + output + v * kLanes;
  };
  // All sums together are larger than the nearer caches.
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) hwy::Prefetch(place_of(r, v));
  }
  for (std::size_t group = 0; group < p.ends.size(); ++group) {
    const auto sums =
        sum_of_group<Arithmetic, kRows, kVectors, kUsed>(words.groups[group], rows, output);
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t v = 0; v < kVectors; ++v) {
        float* to = place_of(r, v);
        const auto mask = mask_of(v);
        const Vector total = hn::MaskedLoad(mask, tag, to);
        hn::BlendedStore(hn::Add(total, sums[r * kVectors + v]), mask, tag, to);
      }
    }
  }
}

template <class Arithmetic, class Element, std::size_t kVectors, int kUsed>
void add_rows(const ChannelDots<Element>& p, const WordLists<Element>& words, std::int64_t output) {
  std::size_t row = 0;
  for (; row + kMostRows <= p.rows.size(); row += kMostRows) {
    add_block<Arithmetic, Element, kMostRows, kVectors, kUsed>(p, words, &p.rows[row], output);
  }
  for (; row < p.rows.size(); ++row) {
    add_block<Arithmetic, Element, 1, kVectors, kUsed>(p, words, &p.rows[row], output);
  }
}

template <class Arithmetic, class Element, int kUsed>
void add_used(const ChannelDots<Element>& p) {
  WordLists<Element> words;
  words.template list<Arithmetic>(p);
  std::int64_t output = 0;
  for (; output + kLanes < p.outputs; output += 2 * kLanes) {
    add_rows<Arithmetic, Element, kMostVectors, kUsed>(p, words, output);
  }
  if (output < p.outputs) add_rows<Arithmetic, Element, 1, kUsed>(p, words, output);
}

// With so many lanes, or the next number that there is code for.
template <class Arithmetic, class Element, int kUsed, int... kMore>
void add_with(const ChannelDots<Element>& p) {
  if constexpr (sizeof...(kMore) > 0) {
    if (p.words > kUsed) return add_with<Arithmetic, Element, kMore...>(p);
  }
  add_used<Arithmetic, Element, kUsed>(p);
}

template <class Arithmetic, class Element>
void add_channels(const ChannelDots<Element>& dots) {
  CHECK(dots.ends.size() <= ChannelDots<Element>::kMostGroups,
        "more groups than there is room for");
  add_with<Arithmetic, Element, 1, 2, 3, 4, 6, 8, 14, 16>(dots);
}

void add_float_channels(const ChannelDots<float>& dots) { add_channels<Floats>(dots); }

void add_bfloat16_channels(const ChannelDots<Bfloat16>& dots) {
  with_pairs([&](auto arithmetic) { add_channels<decltype(arithmetic)>(dots); });
}

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(add_float_channels);
HWY_EXPORT(add_bfloat16_channels);

void add_channel_dots(const ChannelDots<float>& dots) {
  HWY_DYNAMIC_DISPATCH(add_float_channels)(dots);
}

void add_channel_dots(const ChannelDots<Bfloat16>& dots) {
  HWY_DYNAMIC_DISPATCH(add_bfloat16_channels)(dots);
}

}  // namespace troupe::model::cpu

#endif
