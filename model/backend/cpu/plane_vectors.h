#pragma once

// The inner loops of our convolutions (plane_convolution.h), over planes of numbers in which one
// image row follows the other, channel by channel. Through Highway, which chooses the widest
// instructions of the host: AVX-512 or AVX2, both with fused multiply-add.
//
// The bits do not depend on this choice. Every element is one chain of multiply-adds, fused but
// where a name says otherwise, in the order given here. Sums over positions are formed in sixteen
// lanes, position modulo 16, which are added as ((l + l+8) + (l+4 + l+12)) and so on. With floats
// the thread's setting for subnormals applies. With bfloat16 a link of the chain is a pair of
// numbers (bfloat16.h), multiplied by AVX512-BF16 on hosts where that has the promised bits and is
// faster.

#include <cstdint>
#include <optional>
#include <span>

#include "model/backend/cpu/bfloat16.h"

namespace troupe::model::cpu {

// Positions of a plane come in multiples of this.
inline constexpr std::int64_t kPositionLanes = 16;

// True if this host has the instructions; without them nothing below may be called.
bool plane_vectors_supported();
// Floats in a vector of those that run: 8 or 16.
std::int64_t vector_lanes();
// True if this host has AVX512-BF16, and its products have the promised bits. The first call tries
// them, which takes a moment and needs rounding to the nearest. It allocates nothing.
bool has_bfloat16_instructions();
// True if pairs are multiplied by them, because they are faster here than two fused multiply-adds.
// The first call tries that, too.
bool multiplies_pairs_at_once();
// Takes the place of that trial in tests.
inline std::optional<bool> pairs_at_once_for_tests;

// The channels of a tap that has not all of them: how many, and the place of the first one among
// the rows of weights, in place of t channels.
struct WeightRows {
  std::int64_t first = 0, channels = 0;
};
// sums[o][q] = sum over taps t, channels c, both ascending, of
//   taps[t][c channel_stride + q] weights[(t channels + c) weights_stride + o output_stride].
// Element is float, or as bfloat16.h says, with subnormals flushed: Bfloat16Pair, of which every
// channel here is two, or RoundedFloat, whose channels come in pairs, the second one first.
template <class Element>
struct PlaneProduct {
  std::span<const Element* const> taps;
  std::span<const WeightRows> rows{};  // of each tap; or empty, and all have `channels`
  std::int64_t channels = 0, channel_stride = 0;
  const Element* weights = nullptr;
  std::int64_t outputs = 0, weights_stride = 0, output_stride = 1;
  std::int64_t positions = 0;  // a multiple of kPositionLanes
  float* sums = nullptr;
  std::int64_t sums_stride = 0;
};
void multiply_planes(const PlaneProduct<float>& product);
void multiply_planes(const PlaneProduct<Bfloat16Pair>& product);
void multiply_planes(const PlaneProduct<RoundedFloat>& product);
// With products that are rounded before they are added, as the reference has them.
void multiply_planes_unfused(const PlaneProduct<float>& product);

// sum[q] = sum over planes p, ascending, of planes[p][q].
void add_planes(std::span<const float* const> planes, std::int64_t positions, float* sum);

}  // namespace troupe::model::cpu
