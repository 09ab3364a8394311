#include "model/backend/cpu/plane_dots.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "model/backend/cpu/in_parts.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/float_environment.h"

// This file is compiled once for each kind of vector, as plane_vectors.cpp is.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#define HWY_WANT_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/backend/cpu/plane_dots.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

#include "model/backend/cpu/plane_arithmetic.inc"

constexpr std::int64_t kSumsAtOnce = HWY_MAX_BYTES >= 64 ? 8 : 2;
// Adds to totals[i], for i < count, sixteen lanes each, in the order that plane_vectors.h gives.
// Lanes behind the last are read up to a multiple of kSumsAtOnce.
#if HWY_MAX_BYTES < 32

void add_lanes(const float*, std::int64_t, float*) {}

#elif HWY_MAX_BYTES >= 64

HWY_INLINE void add_lanes(const float* lanes, std::int64_t count, float* totals) {
  const Tag tag;
  using Pairs = hn::RepartitionToWide<hn::RebindToUnsigned<Tag> >;
  const Pairs pairs;
  for (std::int64_t i = 0; i < count; i += kSumsAtOnce) {
    const float* from = lanes + i * kPositionLanes;
    const auto sum = [&](int number) { return hn::Load(tag, from + number * kPositionLanes); };
    // Halves of eight lanes: [a, b].
    const auto eights = [&](Vector a, Vector b) {
      return hn::Add(hn::ConcatLowerLower(tag, b, a), hn::ConcatUpperUpper(tag, b, a));
    };
    // Blocks of four lanes: [a, c, b, d] of [a, b] and [c, d].
    const auto fours = [&](Vector ab, Vector cd) {
      return hn::Add(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(cd), ab),
                     hn::OddEvenBlocks(cd, hn::SwapAdjacentBlocks(ab)));
    };
    const Vector even = fours(eights(sum(0), sum(4)), eights(sum(2), sum(6)));
    const Vector odd = fours(eights(sum(1), sum(5)), eights(sum(3), sum(7)));
    const auto low = hn::InterleaveLower(pairs, hn::BitCast(pairs, even), hn::BitCast(pairs, odd));
    const auto high = hn::InterleaveUpper(pairs, hn::BitCast(pairs, even), hn::BitCast(pairs, odd));
    const Vector twos = hn::Add(hn::BitCast(tag, low), hn::BitCast(tag, high));
    const Vector doubled = hn::Add(twos, hn::Shuffle2301(twos));
    const auto ones = hn::LowerHalf(hn::ConcatEven(tag, doubled, doubled));
    const hn::Half<Tag> half;
    if (count - i >= kSumsAtOnce) {
      hn::StoreU(hn::Add(hn::LoadU(half, totals + i), ones), half, totals + i);
    } else {
      alignas(32) float rest[kSumsAtOnce];
      hn::Store(ones, half, rest);
      for (std::int64_t k = 0; k < count - i; ++k) totals[i + k] += rest[k];
    }
  }
}

#else

HWY_INLINE void add_lanes(const float* lanes, std::int64_t count, float* totals) {
  const hn::FixedTag<float, 8> eight;
  const auto of_four = [&](const float* sixteen) {  // twice
    const auto halves = hn::Add(hn::Load(eight, sixteen), hn::Load(eight, sixteen + 8));
    return hn::Add(halves, hn::ConcatLowerUpper(eight, halves, halves));
  };
  for (std::int64_t i = 0; i < count; i += kSumsAtOnce) {
    const float* first = lanes + i * kPositionLanes;
    const auto both = hn::ConcatUpperLower(eight, of_four(first + kPositionLanes), of_four(first));
    const auto of_two = hn::Add(both, hn::Shuffle1032(both));
    alignas(32) float of_one[8];
    hn::Store(hn::Add(of_two, hn::Shuffle2301(of_two)), eight, of_one);
    totals[i] += of_one[0];
    if (i + 1 < count) totals[i + 1] += of_one[4];
  }
}

#endif

// kRows x kOutputs sums, sixteen lanes each.
template <class Arithmetic, class Element, int kRows, int kOutputs>
HWY_NOINLINE void dot_block(const PlaneDots<Element>& p, std::int64_t row, std::int64_t output,
                            float* lanes) {
  const Tag tag;
  constexpr std::int64_t kInLane = Arithmetic::kInLane;
  const DotRow* rows = p.rows.data() + row;
  for (std::int64_t half = 0; half < kPositionLanes; half += kLanes) {
    Vector sums[kRows][kOutputs];
    for (auto& of_row : sums) {
      for (Vector& sum : of_row) sum = hn::Zero(tag);
    }
    for (std::size_t pair = 0; pair < p.left.size(); ++pair) {
      const Element* left[kRows];
      for (int r = 0; r < kRows; ++r) left[r] = p.left[pair] + rows[r].place;
      const Element* right = p.right[pair] + output * p.right_stride;
      for (std::int64_t q = half * kInLane; q < p.positions; q += kPositionLanes * kInLane) {
        typename Arithmetic::Operand value[kRows];
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) value[r] = Arithmetic::load(left[r] + q);
        const Element* derivatives = right + q;
#pragma GCC unroll 8
        for (int o = 0; o < kOutputs; ++o) {
          const auto derivative = in_register(Arithmetic::load(derivatives));
          derivatives += p.right_stride;
#pragma GCC unroll 8
          for (int r = 0; r < kRows; ++r) {
            sums[r][o] = Arithmetic::multiply_add(value[r], derivative, sums[r][o]);
          }
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int o = 0; o < kOutputs; ++o) {
        hn::StoreU(sums[r][o], tag, lanes + (r * kOutputs + o) * kPositionLanes + half);
      }
    }
  }
}

template <class Arithmetic, class Element, int kRows, int kOutputs>
void add_dot_block(const PlaneDots<Element>& p, std::int64_t row, std::int64_t output) {
  alignas(64) float lanes[(kRows * kOutputs + kSumsAtOnce - 1) * kPositionLanes];
  {
    [[maybe_unused]] const typename Arithmetic::Environment environment;
    dot_block<Arithmetic, Element, kRows, kOutputs>(p, row, output, lanes);
  }
  for (int r = 0; r < kRows; ++r) {
    add_lanes(lanes + r * kOutputs * kPositionLanes, kOutputs,
              p.sums + p.rows[static_cast<std::size_t>(row + r)].sums + output);
  }
}

template <class Element>
using DotBlock = void (*)(const PlaneDots<Element>&, std::int64_t row, std::int64_t output);

template <class Arithmetic, class Element, int kOutputs, int kRows>
constexpr DotBlock<Element> dot_block_of() {
  if constexpr (kOutputs <= kMostOutputs<Arithmetic> &&
                kRows <= vectors_beside<Arithmetic>(kOutputs)) {
    return &add_dot_block<Arithmetic, Element, kRows, kOutputs>;
  }
  return nullptr;
}

template <class Arithmetic, class Element, int kOutputs, int... kRows>
constexpr std::array<DotBlock<Element>, 8> dot_blocks_of(std::integer_sequence<int, kRows...>) {
  return {dot_block_of<Arithmetic, Element, kOutputs, kRows + 1>()...};
}

// [outputs - 1][rows - 1].
template <class Arithmetic, class Element, int... kOutputs>
constexpr std::array<std::array<DotBlock<Element>, 8>, 8> all_dot_blocks(
    std::integer_sequence<int, kOutputs...> eight) {
  return {dot_blocks_of<Arithmetic, Element, kOutputs + 1>(eight)...};
}

template <class Arithmetic, class Element>
void add_dots(const PlaneDots<Element>& dots) {
  static constexpr auto kBlocks =
      all_dot_blocks<Arithmetic, Element>(std::make_integer_sequence<int, 8>());
  in_parts(dots.outputs, kMostOutputs<Arithmetic>, [&](std::int64_t output, std::int64_t outputs) {
    const auto& blocks = kBlocks[static_cast<std::size_t>(outputs - 1)];
    const auto rows = static_cast<std::int64_t>(dots.rows.size());
    in_parts(rows, vectors_beside<Arithmetic>(static_cast<int>(outputs)),
             [&](std::int64_t row, std::int64_t count) {
               blocks[static_cast<std::size_t>(count - 1)](dots, row, output);
             });
  });
}

void add_float_dots(const PlaneDots<float>& dots) { add_dots<Floats>(dots); }

void add_bfloat16_dots(const PlaneDots<Bfloat16>& dots) {
  with_pairs([&](auto arithmetic) { add_dots<decltype(arithmetic)>(dots); });
}

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(add_float_dots);
HWY_EXPORT(add_bfloat16_dots);

void add_plane_dots(const PlaneDots<float>& dots) { HWY_DYNAMIC_DISPATCH(add_float_dots)(dots); }

void add_plane_dots(const PlaneDots<Bfloat16>& dots) {
  HWY_DYNAMIC_DISPATCH(add_bfloat16_dots)(dots);
}

}  // namespace troupe::model::cpu

#endif
