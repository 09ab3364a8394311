#include "model/backend/cpu/plane_vectors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <utility>

#include "model/backend/cpu/in_parts.h"
#include "model/backend/float_environment.h"
#include "runtime/base/clock.h"

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

#include "model/backend/cpu/plane_arithmetic.inc"

std::int64_t vector_lanes() { return kLanes; }

// The sums of the block stay in registers over all taps and channels, and are stored once. Each is
// one chain in the order of taps and channels, so the bits do not depend on how outputs and
// positions are cut into blocks. kSideBySide: output_stride is 1, so that places of weights are
// known when this is compiled.
template <class Arithmetic, class Element, bool kSideBySide, int kOutputs, int kVectors>
HWY_NOINLINE void multiply_block(const PlaneProduct<Element>& p, std::int64_t output,
                                 std::int64_t position) {
  const Tag tag;
  const std::int64_t output_stride = kSideBySide ? 1 : p.output_stride;
  Vector sums[kOutputs][kVectors];
  for (auto& row : sums) {
    for (Vector& sum : row) sum = hn::Zero(tag);
  }
  const Element* const first = p.weights + output * output_stride;
  const Element* weights = first;
  std::int64_t channels = p.channels;
  for (std::size_t tap = 0; tap < p.taps.size(); ++tap) {
    const Element* values = p.taps[tap] + position;
    if (!p.rows.empty()) {
      weights = first + p.rows[tap].first * p.weights_stride;
      channels = p.rows[tap].channels;
    }
    for (std::int64_t c = 0; c < channels; ++c) {
      typename Arithmetic::Operand value[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) value[v] = Arithmetic::load(values + v * kLanes);
#pragma GCC unroll 8
      for (int o = 0; o < kOutputs; ++o) {
        const auto weight = Arithmetic::broadcast(weights + o * output_stride);
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

template <class Arithmetic, class Element, bool kSideBySide, int kOutputs, int kVectors>
constexpr MultiplyBlock<Element> multiply_block_of() {
  if constexpr (kOutputs <= kMostOutputs<Arithmetic> &&
                kVectors <= vectors_beside<Arithmetic>(kOutputs)) {
    return &multiply_block<Arithmetic, Element, kSideBySide, kOutputs, kVectors>;
  }
  return nullptr;
}

template <class Arithmetic, class Element, bool kSideBySide, int kOutputs, int... kVectors>
constexpr std::array<MultiplyBlock<Element>, 8> multiply_blocks_of(
    std::integer_sequence<int, kVectors...>) {
  return {multiply_block_of<Arithmetic, Element, kSideBySide, kOutputs, kVectors + 1>()...};
}

// [outputs - 1][vectors - 1].
template <class Arithmetic, class Element, bool kSideBySide, int... kOutputs>
constexpr std::array<std::array<MultiplyBlock<Element>, 8>, 8> all_multiply_blocks(
    std::integer_sequence<int, kOutputs...> eight) {
  return {multiply_blocks_of<Arithmetic, Element, kSideBySide, kOutputs + 1>(eight)...};
}

template <class Arithmetic, bool kSideBySide, class Element>
void multiply_in_blocks(const PlaneProduct<Element>& product) {
  static constexpr auto kBlocks =
      all_multiply_blocks<Arithmetic, Element, kSideBySide>(std::make_integer_sequence<int, 8>());
  [[maybe_unused]] const typename Arithmetic::Environment environment;
  in_parts(
      product.outputs, kMostOutputs<Arithmetic>, [&](std::int64_t output, std::int64_t outputs) {
        const auto& blocks = kBlocks[static_cast<std::size_t>(outputs - 1)];
        in_parts(product.positions / kLanes, vectors_beside<Arithmetic>(static_cast<int>(outputs)),
                 [&](std::int64_t vector, std::int64_t vectors) {
                   blocks[static_cast<std::size_t>(vectors - 1)](product, output, vector * kLanes);
                 });
      });
}

template <class Arithmetic, class Element>
void multiply(const PlaneProduct<Element>& product) {
  if (product.output_stride == 1) {
    multiply_in_blocks<Arithmetic, true>(product);
  } else {
    multiply_in_blocks<Arithmetic, false>(product);
  }
}

void multiply_float_planes(const PlaneProduct<float>& product) { multiply<Floats>(product); }

void multiply_rounded_planes(const PlaneProduct<RoundedFloat>& product) {
  multiply<RoundedFloats>(product);
}

void multiply_unfused_planes(const PlaneProduct<float>& product) {
  multiply<UnfusedFloats>(product);
}

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

bool has_bfloat16_instructions() {
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0 && instruction_is_as_promised();
  return has;
}

// The least time that some products of a block take.
template <class Arithmetic, class Element, std::int64_t kChannels>
runtime::Duration time_of_block() {
  constexpr std::int64_t kOutputs = 8, kPositions = 3 * kLanes;
  std::array<Element, kChannels * kPositions> values{};
  std::array<Element, kChannels * kOutputs> weights{};
  std::array<float, kOutputs * kPositions> sums{};
  const Element* tap = values.data();
  const PlaneProduct<Element> product{.taps = {&tap, 1},
                                      .channels = kChannels,
                                      .channel_stride = kPositions,
                                      .weights = weights.data(),
                                      .outputs = kOutputs,
                                      .weights_stride = kOutputs,
                                      .positions = kPositions,
                                      .sums = sums.data(),
                                      .sums_stride = kPositions};
  auto least = runtime::Duration::max();
  for (int round = 0; round < 20; ++round) {
    const auto begin = runtime::steady_now();
    multiply<Arithmetic>(product);
    least = std::min(least, runtime::steady_now() - begin);
  }
  return least;
}

bool is_faster_at_once() {
  constexpr std::int64_t kPairs = 128;
  return time_of_block<PairsAtOnce, Bfloat16Pair, kPairs>() <
         time_of_block<RoundedFloats, RoundedFloat, 2 * kPairs>();
}

bool multiplies_pairs_at_once() {
  if (pairs_at_once_for_tests) return has_bfloat16_instructions() && *pairs_at_once_for_tests;
  static const bool at_once = has_bfloat16_instructions() && is_faster_at_once();
  return at_once;
}

#else

bool has_bfloat16_instructions() { return false; }
bool multiplies_pairs_at_once() { return false; }

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

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(vector_lanes);
HWY_EXPORT(has_bfloat16_instructions);
HWY_EXPORT(multiplies_pairs_at_once);
HWY_EXPORT(multiply_float_planes);
HWY_EXPORT(multiply_rounded_planes);
HWY_EXPORT(multiply_unfused_planes);
HWY_EXPORT(multiply_pair_planes);
HWY_EXPORT(add_planes);

bool plane_vectors_supported() {
  // Older vectors, whose numbers are higher, have no fused multiply-add.
  constexpr auto kWithFused = HWY_AVX2 | (HWY_AVX2 - 1);
  return (hwy::SupportedTargets() & kWithFused) != 0;
}

std::int64_t vector_lanes() { return HWY_DYNAMIC_DISPATCH(vector_lanes)(); }

bool has_bfloat16_instructions() { return HWY_DYNAMIC_DISPATCH(has_bfloat16_instructions)(); }

bool multiplies_pairs_at_once() { return HWY_DYNAMIC_DISPATCH(multiplies_pairs_at_once)(); }

void multiply_planes(const PlaneProduct<float>& product) {
  HWY_DYNAMIC_DISPATCH(multiply_float_planes)(product);
}

void multiply_planes_unfused(const PlaneProduct<float>& product) {
  HWY_DYNAMIC_DISPATCH(multiply_unfused_planes)(product);
}

void multiply_planes(const PlaneProduct<Bfloat16Pair>& product) {
  HWY_DYNAMIC_DISPATCH(multiply_pair_planes)(product);
}

void multiply_planes(const PlaneProduct<RoundedFloat>& product) {
  HWY_DYNAMIC_DISPATCH(multiply_rounded_planes)(product);
}

void add_planes(std::span<const float* const> planes, std::int64_t positions, float* sum) {
  HWY_DYNAMIC_DISPATCH(add_planes)(planes, positions, sum);
}

}  // namespace troupe::model::cpu

#endif
