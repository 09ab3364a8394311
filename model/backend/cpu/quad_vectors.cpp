#include "model/backend/cpu/quad_vectors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "model/backend/cpu/in_parts.h"
#include "model/backend/cpu/plane_vectors.h"

// This file is compiled once for each kind of vector, as plane_vectors.cpp is.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#define HWY_WANT_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/backend/cpu/quad_vectors.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<float, kPositionLanes>;
using Integers = hn::RebindToSigned<Tag>;
using Bits = hn::RebindToUnsigned<Tag>;
using Sum = hn::Vec<Integers>;
constexpr std::int64_t kLanes = hn::MaxLanes(Tag());

#if HWY_MAX_BYTES < 32

// Highway needs vectors of one number, which never run.
void multiply_quads(const QuadProduct&) {}

#else

HWY_INLINE Sum load_quads(const Int8Quad* from) {
  return hn::LoadU(Integers(), reinterpret_cast<const std::int32_t*>(from));
}
HWY_INLINE Sum broadcast_quad(const Int8Quad* from) {
  return hn::Set(Integers(), std::bit_cast<std::int32_t>(*from));
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL

constexpr int kMostVectors = 4, kMostOutputs = 6;

// Four products of bytes, those of the first operand without a sign, by one instruction.
struct Arithmetic {
  using Value = Sum;
  using Weight = Sum;
  static HWY_INLINE Value load(const Int8Quad* from) { return load_quads(from); }
  static HWY_INLINE Weight broadcast(const Int8Quad* from) { return broadcast_quad(from); }
  static HWY_INLINE Sum multiply_add(Value a, Weight b, Sum sum) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
};

#else

constexpr int kMostVectors = kLanes >= 16 ? 3 : 1, kMostOutputs = 6;

// Even and odd bytes apart, as numbers of sixteen bits of which pairs are multiplied.
struct Arithmetic {
  using Halves = hn::Repartition<std::int16_t, Tag>;
  using UnsignedHalves = hn::Repartition<std::uint16_t, Tag>;
  struct Operand {
    hn::Vec<Halves> even, odd;
  };
  using Value = Operand;
  using Weight = Operand;
  static HWY_INLINE Value load(const Int8Quad* from) {
    const auto both = hn::BitCast(UnsignedHalves(), load_quads(from));
    const auto even = hn::And(both, hn::Set(UnsignedHalves(), 0xFF));
    return {hn::BitCast(Halves(), even), hn::BitCast(Halves(), hn::ShiftRight<8>(both))};
  }
  static HWY_INLINE Weight broadcast(const Int8Quad* from) {
    const auto both = hn::BitCast(Halves(), broadcast_quad(from));
    return {hn::ShiftRight<8>(hn::ShiftLeft<8>(both)), hn::ShiftRight<8>(both)};
  }
  static HWY_INLINE Sum multiply_add(const Value& a, const Weight& b, Sum sum) {
    const Integers tag;
    Sum unused = hn::Zero(tag);
    sum = hn::ReorderWidenMulAccumulate(tag, a.even, b.even, sum, unused);
    return hn::ReorderWidenMulAccumulate(tag, a.odd, b.odd, sum, unused);
  }
};

#endif

// The sums of the block stay in registers over all taps and quads.
template <int kOutputs, int kVectors>
HWY_NOINLINE void multiply_block(const QuadProduct& p, std::int64_t output, std::int64_t position) {
  Sum sums[kOutputs][kVectors];
#pragma GCC unroll 8
  for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[o][v] = hn::Set(Integers(), p.offsets[output + o]);
  }
  const Int8Quad* weights = p.weights + output;
  for (const Int8Quad* tap : p.taps) {
    const Int8Quad* values = tap + position;
    for (std::int64_t c = 0; c < p.quads; ++c) {
      typename Arithmetic::Value value[kVectors];
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
      values += p.stride;
      weights += p.outputs;
    }
  }
#pragma GCC unroll 8
  for (int o = 0; o < kOutputs; ++o) {
    float* to = p.sums + (output + o) * p.sums_stride + position;
    const auto scale = hn::Set(Tag(), p.scales[output + o]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(hn::Mul(hn::ConvertTo(Tag(), sums[o][v]), scale), Tag(), to + v * kLanes);
    }
  }
}

using MultiplyBlock = void (*)(const QuadProduct&, std::int64_t output, std::int64_t position);

template <int kOutputs, int... kVectors>
constexpr std::array<MultiplyBlock, kMostVectors> blocks_of(
    std::integer_sequence<int, kVectors...>) {
  return {&multiply_block<kOutputs, kVectors + 1>...};
}

// [outputs - 1][vectors - 1].
template <int... kOutputs>
constexpr std::array<std::array<MultiplyBlock, kMostVectors>, kMostOutputs> all_blocks(
    std::integer_sequence<int, kOutputs...>) {
  return {blocks_of<kOutputs + 1>(std::make_integer_sequence<int, kMostVectors>())...};
}

void multiply_quads(const QuadProduct& product) {
  static constexpr auto kBlocks = all_blocks(std::make_integer_sequence<int, kMostOutputs>());
  in_parts(product.outputs, kMostOutputs, [&](std::int64_t output, std::int64_t outputs) {
    const auto& blocks = kBlocks[static_cast<std::size_t>(outputs - 1)];
    in_parts(product.positions / kLanes, kMostVectors,
             [&](std::int64_t vector, std::int64_t vectors) {
               blocks[static_cast<std::size_t>(vectors - 1)](product, output, vector * kLanes);
             });
  });
}

#endif

// NaN becomes anything: the scales of such an event are NaN.
HWY_INLINE hn::Vec<Bits> quantised(const float* numbers, float factor) {
  const Tag tag;
  const auto most = hn::Set(tag, static_cast<float>(kInt8Most));
  const auto value = hn::Mul(hn::LoadU(tag, numbers), hn::Set(tag, factor));
  const auto whole = hn::NearestInt(hn::Max(hn::Min(value, most), hn::Neg(most)));
  return hn::Add(hn::BitCast(Bits(), whole), hn::Set(Bits(), kInt8Zero));
}

void to_quads_of(const float* numbers, std::int64_t channels, std::int64_t plane,
                 const float* factors, Int8Quad* quads) {
  const Bits bits;
  for (std::int64_t quad = 0; quad < quads_of(channels); ++quad) {
    const std::int64_t first = quad * kQuad, count = std::min(kQuad, channels - first);
    const float* from = numbers + first * plane;
    for (std::int64_t q = 0; q < plane; q += kLanes) {
      const auto at = [&](std::int64_t c) {
        if (c >= count) return hn::Set(bits, kInt8Zero);
        return quantised(from + c * plane + q, factors[first + c]);
      };
      const auto lower = hn::Or(at(0), hn::ShiftLeft<8>(at(1)));
      const auto upper = hn::Or(hn::ShiftLeft<16>(at(2)), hn::ShiftLeft<24>(at(3)));
      hn::StoreU(hn::Or(lower, upper), bits,
                 reinterpret_cast<std::uint32_t*>(quads + quad * plane + q));
    }
  }
}

// Sixteen places of every channel follow each other like the channels of cells.
void find_largest_of(const float* cells, std::int64_t count, std::int64_t channels,
                     float* largest) {
  const Tag tag;
  const Integers integers;
  const std::int64_t numbers = count * channels, block = find_largest_floats(channels);
  std::fill_n(largest, block, 0.0f);
  std::int64_t i = 0;
  for (; i + block <= numbers; i += block) {
    for (std::int64_t k = 0; k < block; k += kLanes) {
      const auto value = hn::BitCast(integers, hn::Abs(hn::LoadU(tag, cells + i + k)));
      const auto before = hn::BitCast(integers, hn::LoadU(tag, largest + k));
      hn::StoreU(hn::BitCast(tag, hn::Max(before, value)), tag, largest + k);
    }
  }
  for (std::int64_t k = 0; i + k < numbers; ++k) {
    largest[k] = larger_magnitude(largest[k], cells[i + k]);
  }
  for (std::int64_t k = channels; k < block; ++k) {
    largest[k % channels] = larger_magnitude(largest[k % channels], largest[k]);
  }
}

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(multiply_quads);
HWY_EXPORT(to_quads_of);
HWY_EXPORT(find_largest_of);

void multiply_planes(const QuadProduct& product) { HWY_DYNAMIC_DISPATCH(multiply_quads)(product); }

void to_quads(const float* numbers, std::int64_t channels, std::int64_t plane, const float* factors,
              Int8Quad* quads) {
  HWY_DYNAMIC_DISPATCH(to_quads_of)(numbers, channels, plane, factors, quads);
}

void find_largest(const float* cells, std::int64_t count, std::int64_t channels, float* largest) {
  HWY_DYNAMIC_DISPATCH(find_largest_of)(cells, count, channels, largest);
}

}  // namespace troupe::model::cpu

#endif
