#include "model/backend/cpu/channel_dots.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "model/backend/cpu/in_parts.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/float_environment.h"

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

// Rows of one block: the sums of lanes that wait for their partners, of all levels of the tree,
// have to fit the registers, too.
constexpr std::size_t kMostRows = kLanes >= 16 ? 4 : 2;

template <std::size_t kRows>
using OfRows = std::array<Vector, kRows>;

// The pairs of planes of a group, from its first output on.
template <class Element>
struct PlaneGroup {
  std::span<const Element* const> left;
  std::span<const float* const> right;
  const std::int64_t* rows;
  std::int64_t output, right_stride, words;
};

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

// The sums of lane `lane` of positions, for each row.
template <class Arithmetic, class Element, std::size_t kRows>
HWY_INLINE OfRows<kRows> sum_of_lane(const PlaneGroup<Element>& g, std::int64_t lane) {
  OfRows<kRows> sums;
  for (Vector& sum : sums) sum = hn::Zero(Tag());
  for (std::size_t pair = 0; pair < g.left.size(); ++pair) {
    for (std::int64_t word = lane; word < g.words; word += kPositionLanes) {
      const auto derivative =
          in_register(Arithmetic::load(g.right[pair] + word * g.right_stride + g.output));
      const Element* left = g.left[pair] + word * Arithmetic::kInLane;
#pragma GCC unroll 4
      for (std::size_t r = 0; r < kRows; ++r) {
        sums[r] = Arithmetic::multiply_add(broadcast_word<Arithmetic>(left + g.rows[r]), derivative,
                                           sums[r]);
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
      for (std::size_t r = 0; r < sum.size(); ++r) sum[r] = hn::Add(sum[r], other[r]);
    }
    return sum;
  }
}

template <class Arithmetic, class Element, std::size_t kRows, int kUsed>
HWY_INLINE OfRows<kRows> sum_of_group(const PlaneGroup<Element>& g) {
  if constexpr (std::is_empty_v<typename Arithmetic::Environment>) {
    return sum_of_lanes<kUsed, 0, 1>(
        [&](int lane) HWY_ATTR { return sum_of_lane<Arithmetic, Element, kRows>(g, lane); });
  } else {
    // Lanes are added outside of the environment of their products.
    std::array<OfRows<kRows>, kUsed> lanes;
    {
      const typename Arithmetic::Environment environment;
      for (int lane = 0; lane < kUsed; ++lane) {
        lanes[static_cast<std::size_t>(lane)] = sum_of_lane<Arithmetic, Element, kRows>(g, lane);
      }
    }
    return sum_of_lanes<kUsed, 0, 1>(
        [&](int lane) HWY_ATTR { return lanes[static_cast<std::size_t>(lane)]; });
  }
}

template <class Arithmetic, class Element, std::size_t kRows, int kUsed>
HWY_NOINLINE void add_block(const ChannelDots<Element>& p, std::int64_t row, std::int64_t output) {
  const Tag tag;
  const auto outputs = static_cast<std::size_t>(std::min(kLanes, p.outputs - output));
  const auto mask = hn::FirstN(tag, outputs);
  float* to = p.sums + row * p.sums_stride + output;
  OfRows<kRows> totals;
  for (std::size_t r = 0; r < kRows; ++r)
    totals[r] = hn::MaskedLoad(mask, tag, to + r * p.sums_stride);
  std::size_t begin = 0;
  for (const std::size_t end : p.ends) {
    const auto sum = sum_of_group<Arithmetic, Element, kRows, kUsed>(
        PlaneGroup<Element>{p.left.subspan(begin, end - begin), p.right.subspan(begin, end - begin),
                            p.rows.data() + row, output, p.right_stride, p.words});
    for (std::size_t r = 0; r < kRows; ++r) totals[r] = hn::Add(totals[r], sum[r]);
    begin = end;
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    hn::BlendedStore(totals[r], mask, tag, to + r * p.sums_stride);
  }
}

template <class Arithmetic, class Element, int kUsed>
void add_used(const ChannelDots<Element>& p) {
  const auto rows = static_cast<std::int64_t>(p.rows.size());
  for (std::int64_t output = 0; output < p.outputs; output += kLanes) {
    std::int64_t row = 0;
    for (; row + std::int64_t{kMostRows} <= rows; row += std::int64_t{kMostRows}) {
      add_block<Arithmetic, Element, kMostRows, kUsed>(p, row, output);
    }
    for (; row < rows; ++row) add_block<Arithmetic, Element, 1, kUsed>(p, row, output);
  }
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
