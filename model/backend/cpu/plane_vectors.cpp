#include "model/backend/cpu/plane_vectors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <utility>

#include "model/backend/cpu/in_parts.h"
#include "model/backend/float_environment.h"

// This file is compiled once for each kind of vector, in a namespace of its own. Highway needs a
// scalar one, which never runs. Targets up to HWY_AVX3_DL (better ones have smaller numbers) are
// the AVX-512 of processors that may have AVX512-BF16.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#define HWY_WANT_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/backend/cpu/plane_vectors.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<float, kPositionLanes>;
using Vector = hn::Vec<Tag>;
constexpr std::int64_t kLanes = hn::MaxLanes(Tag());
constexpr int kRegisters = kLanes >= 16 ? 32 : 16;
constexpr int kMostOutputs = kLanes >= 16 ? 8 : 6;  // of one block

std::int64_t vector_lanes() { return kLanes; }

// How the operands in a vector are multiplied and added to sums.
struct Floats {
  using Operand = Vector;
  static constexpr int kRegistersEach = 1;  // of an operand
  static constexpr std::int64_t kInLane = 1;
  struct Environment {};  // of the thread, while products are formed

  static HWY_INLINE Operand load(const float* from) { return hn::LoadU(Tag(), from); }
  static HWY_INLINE Operand broadcast(const float* from) { return hn::Set(Tag(), *from); }
  static HWY_INLINE Vector multiply_add(Operand a, Operand b, Vector sum) {
    return hn::MulAdd(a, b, sum);
  }
};

using Bits = hn::RebindToUnsigned<Tag>;

HWY_INLINE Vector load_pairs(const void* from) {
  return hn::BitCast(Tag(), hn::LoadU(Bits(), static_cast<const std::uint32_t*>(from)));
}
HWY_INLINE Vector broadcast_pair(const Bfloat16Pair& pair) {
  return hn::BitCast(Tag(), hn::Set(Bits(), std::bit_cast<std::uint32_t>(pair)));
}

// Pairs of bfloat16 as bfloat16.h defines their products, one fused multiply-add after the other.
struct PairsInTurn {
  struct Operand {
    Vector first, second;
  };
  static constexpr int kRegistersEach = 2;
  static constexpr std::int64_t kInLane = 2;
  using Environment = FlushedSubnormals;

  static HWY_INLINE Operand parts_of(Vector pairs) {
    const auto both = hn::BitCast(Bits(), pairs);
    return {hn::BitCast(Tag(), hn::ShiftLeft<16>(both)),
            hn::BitCast(Tag(), hn::And(both, hn::Set(Bits(), 0xFFFF0000u)))};
  }
  static HWY_INLINE Operand load(const void* from) { return parts_of(load_pairs(from)); }
  static HWY_INLINE Operand broadcast(const Bfloat16Pair* from) {
    return parts_of(broadcast_pair(*from));
  }
  static HWY_INLINE Vector multiply_add(const Operand& a, const Operand& b, Vector sum) {
    return hn::MulAdd(a.first, b.first, hn::MulAdd(a.second, b.second, sum));
  }
};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL

// The same by one instruction, which flushes subnormals by itself.
struct PairsAtOnce {
  using Operand = Vector;
  static constexpr int kRegistersEach = 1;
  static constexpr std::int64_t kInLane = 2;
  struct Environment {};

  static HWY_INLINE Operand load(const void* from) { return load_pairs(from); }
  static HWY_INLINE Operand broadcast(const Bfloat16Pair* from) { return broadcast_pair(*from); }
  static HWY_INLINE Vector multiply_add(Operand a, Operand b, Vector sum) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
};

#endif

// The most vectors of positions, or of rows, beside `outputs` outputs: so many that sums and
// operands still fit the registers.
template <class Arithmetic>
constexpr int vectors_beside(int outputs) {
  constexpr int kEach = Arithmetic::kRegistersEach;
  return std::clamp((kRegisters - kEach) / (outputs + kEach), 1, 8);
}

// The sums of the block stay in registers over all taps and channels, and are stored once. Each is
// one chain in the order of taps and channels, so the bits do not depend on how outputs and
// positions are cut into blocks.
template <class Arithmetic, class Element, int kOutputs, int kVectors>
HWY_NOINLINE void multiply_block(const PlaneProduct<Element>& p, std::int64_t output,
                                 std::int64_t position) {
  const Tag tag;
  Vector sums[kOutputs][kVectors];
  for (auto& row : sums) {
    for (Vector& sum : row) sum = hn::Zero(tag);
  }
  const Element* weights = p.weights + output;
  for (const Element* tap : p.taps) {
    const Element* values = tap + position;
    for (std::int64_t c = 0; c < p.channels; ++c) {
      typename Arithmetic::Operand value[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) value[v] = Arithmetic::load(values + v * kLanes);
#pragma GCC unroll 8
      for (int o = 0; o < kOutputs; ++o) {
        const auto weight = Arithmetic::broadcast(weights + o);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          sums[o][v] = Arithmetic::multiply_add(value[v], weight, sums[o][v]);
        }
      }
      values += p.channel_stride;
      weights += p.weights_stride;
    }
  }
#pragma GCC unroll 8
  for (int o = 0; o < kOutputs; ++o) {
    float* to = p.sums + (output + o) * p.sums_stride + position;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[o][v], tag, to + v * kLanes);
  }
}

template <class Element>
using MultiplyBlock = void (*)(const PlaneProduct<Element>&, std::int64_t output,
                               std::int64_t position);

template <class Arithmetic, class Element, int kOutputs, int kVectors>
constexpr MultiplyBlock<Element> multiply_block_of() {
  if constexpr (kOutputs <= kMostOutputs && kVectors <= vectors_beside<Arithmetic>(kOutputs)) {
    return &multiply_block<Arithmetic, Element, kOutputs, kVectors>;
  }
  return nullptr;
}

template <class Arithmetic, class Element, int kOutputs, int... kVectors>
constexpr std::array<MultiplyBlock<Element>, 8> multiply_blocks_of(
    std::integer_sequence<int, kVectors...>) {
  return {multiply_block_of<Arithmetic, Element, kOutputs, kVectors + 1>()...};
}

// [outputs - 1][vectors - 1].
template <class Arithmetic, class Element, int... kOutputs>
constexpr std::array<std::array<MultiplyBlock<Element>, 8>, 8> all_multiply_blocks(
    std::integer_sequence<int, kOutputs...> eight) {
  return {multiply_blocks_of<Arithmetic, Element, kOutputs + 1>(eight)...};
}

template <class Arithmetic, class Element>
void multiply(const PlaneProduct<Element>& product) {
  static constexpr auto kBlocks =
      all_multiply_blocks<Arithmetic, Element>(std::make_integer_sequence<int, 8>());
  [[maybe_unused]] const typename Arithmetic::Environment environment;
  in_parts(product.outputs, kMostOutputs, [&](std::int64_t output, std::int64_t outputs) {
    const auto& blocks = kBlocks[static_cast<std::size_t>(outputs - 1)];
    in_parts(product.positions / kLanes, vectors_beside<Arithmetic>(static_cast<int>(outputs)),
             [&](std::int64_t vector, std::int64_t vectors) {
               blocks[static_cast<std::size_t>(vectors - 1)](product, output, vector * kLanes);
             });
  });
}

void multiply_float_planes(const PlaneProduct<float>& product) { multiply<Floats>(product); }

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL

// Numbers whose products and sums are subnormal or nearly so, exceed the largest number, cancel, or
// are rounded at the brink of the subnormal ones; and all other numbers but infinities and NaN.
constexpr std::uint16_t kBrinks[] = {0x0000, 0x8000, 0x0001, 0x007F, 0x0080, 0x8080,
                                     0x2000, 0xA000, 0x1A40, 0x1A00, 0x9A00, 0x3F80,
                                     0xBF80, 0x7F00, 0x7F7F, 0xFF7F};

// Tries the instruction: the products of a second pair are added to the products of a first one.
bool instruction_is_as_promised() {
  constexpr std::int64_t kPairs = 2, kOutputs = 8;
  std::array<Bfloat16Pair, kPairs * kLanes> values;
  std::array<Bfloat16Pair, kPairs * kOutputs> weights;
  std::array<float, kOutputs * kLanes> at_once, in_turn;
  std::uint64_t state = 1;
  for (int round = 0; round < 400; ++round) {
    const auto draw = [&]() -> Bfloat16 {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const auto bits = static_cast<std::uint16_t>(state >> 48);
      if (round % 4 == 0) return {static_cast<std::uint16_t>(bits & 0xBFFF)};
      // Exponents around that of the root of the smallest number.
      if (round % 4 == 1) return {static_cast<std::uint16_t>((bits & 0x83FF) + 0x1E00)};
      return {kBrinks[bits % std::size(kBrinks)]};
    };
    for (Bfloat16Pair& pair : values) pair = {draw(), draw()};
    for (Bfloat16Pair& pair : weights) pair = {draw(), draw()};
    const Bfloat16Pair* tap = values.data();
    PlaneProduct<Bfloat16Pair> product{.taps = {&tap, 1},
                                       .channels = kPairs,
                                       .channel_stride = kLanes,
                                       .weights = weights.data(),
                                       .outputs = kOutputs,
                                       .weights_stride = kOutputs,
                                       .positions = kLanes,
                                       .sums = at_once.data(),
                                       .sums_stride = kLanes};
    multiply<PairsAtOnce>(product);
    product.sums = in_turn.data();
    multiply<PairsInTurn>(product);
    for (std::size_t i = 0; i < at_once.size(); ++i) {
      const bool no_numbers = at_once[i] != at_once[i] && in_turn[i] != in_turn[i];
      if (!no_numbers &&
          std::bit_cast<std::uint32_t>(at_once[i]) != std::bit_cast<std::uint32_t>(in_turn[i])) {
        return false;
      }
    }
  }
  return true;
}

bool multiplies_pairs_at_once() {
  static const bool at_once =
      __builtin_cpu_supports("avx512bf16") != 0 && instruction_is_as_promised();
  return at_once;
}

// Calls use(arithmetic).
template <class Use>
void with_pairs(const Use& use) {
  if (multiplies_pairs_at_once()) {
    use(PairsAtOnce());
  } else {
    use(PairsInTurn());
  }
}

#else

bool multiplies_pairs_at_once() { return false; }

template <class Use>
void with_pairs(const Use& use) {
  use(PairsInTurn());
}

#endif

void multiply_pair_planes(const PlaneProduct<Bfloat16Pair>& product) {
  with_pairs([&](auto arithmetic) { multiply<decltype(arithmetic)>(product); });
}

void add_planes(std::span<const float* const> planes, std::int64_t positions, float* sum) {
  const Tag tag;
  constexpr std::int64_t kVectors = kPositionLanes / kLanes;
  for (std::int64_t q = 0; q < positions; q += kPositionLanes) {
    Vector sums[kVectors];
    for (Vector& of_lanes : sums) of_lanes = hn::Zero(tag);
    for (const float* plane : planes) {
      for (std::int64_t v = 0; v < kVectors; ++v) {
        sums[v] = hn::Add(sums[v], hn::LoadU(tag, plane + q + v * kLanes));
      }
    }
    for (std::int64_t v = 0; v < kVectors; ++v) hn::StoreU(sums[v], tag, sum + q + v * kLanes);
  }
}

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

// Keeps a value in a register. The compiler would otherwise read memory again for every use, in
// fused multiply-adds with an operand in memory.
HWY_INLINE Vector in_register(Vector value) {
#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 32
  __asm__("" : "+v"(value.raw));
#endif
  return value;
}
HWY_INLINE PairsInTurn::Operand in_register(const PairsInTurn::Operand& pairs) { return pairs; }

// kRows x kOutputs sums, sixteen lanes each.
template <class Arithmetic, class Element, int kRows, int kOutputs>
HWY_NOINLINE void dot_block(const PlaneDots<Element>& p, std::int64_t row, std::int64_t output,
                            float* lanes) {
  const Tag tag;
  constexpr std::int64_t kInLane = Arithmetic::kInLane;
  const std::int64_t* rows = p.rows.data() + row;
  for (std::int64_t half = 0; half < kPositionLanes; half += kLanes) {
    Vector sums[kRows][kOutputs];
    for (auto& of_row : sums) {
      for (Vector& sum : of_row) sum = hn::Zero(tag);
    }
    for (std::size_t pair = 0; pair < p.left.size(); ++pair) {
      const Element* left[kRows];
      for (int r = 0; r < kRows; ++r) left[r] = p.left[pair] + rows[r];
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
              p.sums + (row + r) * p.sums_stride + output);
  }
}

template <class Element>
using DotBlock = void (*)(const PlaneDots<Element>&, std::int64_t row, std::int64_t output);

template <class Arithmetic, class Element, int kOutputs, int kRows>
constexpr DotBlock<Element> dot_block_of() {
  if constexpr (kOutputs <= kMostOutputs && kRows <= vectors_beside<Arithmetic>(kOutputs)) {
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
  in_parts(dots.outputs, kMostOutputs, [&](std::int64_t output, std::int64_t outputs) {
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

HWY_EXPORT(vector_lanes);
HWY_EXPORT(multiplies_pairs_at_once);
HWY_EXPORT(multiply_float_planes);
HWY_EXPORT(multiply_pair_planes);
HWY_EXPORT(add_planes);
HWY_EXPORT(add_float_dots);
HWY_EXPORT(add_bfloat16_dots);

bool plane_vectors_supported() {
  // Older vectors, whose numbers are higher, have no fused multiply-add.
  constexpr auto kWithFused = HWY_AVX2 | (HWY_AVX2 - 1);
  return (hwy::SupportedTargets() & kWithFused) != 0;
}

std::int64_t vector_lanes() { return HWY_DYNAMIC_DISPATCH(vector_lanes)(); }

bool multiplies_pairs_at_once() { return HWY_DYNAMIC_DISPATCH(multiplies_pairs_at_once)(); }

void multiply_planes(const PlaneProduct<float>& product) {
  HWY_DYNAMIC_DISPATCH(multiply_float_planes)(product);
}

void multiply_planes(const PlaneProduct<Bfloat16Pair>& product) {
  HWY_DYNAMIC_DISPATCH(multiply_pair_planes)(product);
}

void add_planes(std::span<const float* const> planes, std::int64_t positions, float* sum) {
  HWY_DYNAMIC_DISPATCH(add_planes)(planes, positions, sum);
}

void add_plane_dots(const PlaneDots<float>& dots) { HWY_DYNAMIC_DISPATCH(add_float_dots)(dots); }

void add_plane_dots(const PlaneDots<Bfloat16>& dots) {
  HWY_DYNAMIC_DISPATCH(add_bfloat16_dots)(dots);
}

}  // namespace troupe::model::cpu

#endif
