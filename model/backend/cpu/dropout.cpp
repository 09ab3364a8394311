#include "model/backend/cpu/dropout.h"

#include <algorithm>
#include <cmath>

#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/kernel_call.h"
#include "model/backend/reference/kernels.h"

// This file is compiled once for each kind of vector, as plane_vectors.cpp is.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/backend/cpu/dropout.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

// Handles whole vectors of elements and returns where the rest begins. The first block is whole.
#if HWY_MAX_BYTES < 32

std::int64_t drop_vectors(const float*, float*, const DropoutForward&,
                          const runtime::RandomPosition&, const ElementRange& range) {
  return range.begin;
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// One block of Philox 4x32 (runtime/base/random.cpp) per lane of 64 bits: each of its words stands
// in the low half, and the high half holds leftovers, which the 32-bit products ignore.
using Blocks = hn::CappedTag<std::uint64_t, 8>;
using Words = hn::Repartition<std::uint32_t, Blocks>;
using Floats = hn::Repartition<float, Blocks>;
using BlockVector = hn::Vec<Blocks>;
constexpr std::int64_t kBlocks = hn::MaxLanes(Blocks());
constexpr std::int64_t kElements = 4 * kBlocks;  // drawn by one vector

struct Counters {
  BlockVector w[4];
};

// The keys of all rounds.
struct Keys {
  explicit Keys(std::uint64_t key) {
    auto key0 = static_cast<std::uint32_t>(key);
    auto key1 = static_cast<std::uint32_t>(key >> 32);
    for (auto& of_round : keys) {
      of_round[0] = key0;
      of_round[1] = key1;
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
  }
  std::uint64_t keys[10][2];
};

HWY_INLINE Counters philox(Counters c, const Keys& keys) {
  const Blocks blocks;
  const Words words;
  const auto as_words = [&](BlockVector v) { return hn::BitCast(words, v); };
  const auto multiplier0 = hn::Set(words, 0xD2511F53u), multiplier1 = hn::Set(words, 0xCD9E8D57u);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const BlockVector product0 = hn::MulEven(multiplier0, as_words(c.w[0]));
    const BlockVector product1 = hn::MulEven(multiplier1, as_words(c.w[2]));
    c.w[0] = hn::Xor3(hn::ShiftRight<32>(product1), c.w[1], hn::Set(blocks, keys.keys[round][0]));
    c.w[1] = product1;
    c.w[2] = hn::Xor3(hn::ShiftRight<32>(product0), c.w[3], hn::Set(blocks, keys.keys[round][1]));
    c.w[3] = product0;
  }
  return c;
}

std::int64_t drop_vectors(const float* from, float* to, const DropoutForward& dropout,
                          const runtime::RandomPosition& position, const ElementRange& range) {
  const Blocks blocks;
  const Words words;
  const Floats floats;
  const std::uint64_t limit = dropout_threshold(dropout.rate);
  if (limit >> 32 != 0) return range.begin;
  const auto threshold = hn::Set(words, static_cast<std::uint32_t>(limit));
  const auto scale = hn::Set(floats, static_cast<float>(1.0 / (1.0 - dropout.rate)));
  const auto drop = [&](std::int64_t i, BlockVector numbers) {
    const auto drawn = hn::BitCast(words, numbers);
    const auto kept = hn::RebindMask(floats, hn::Eq(hn::Max(drawn, threshold), drawn));
    const auto value = hn::Mul(hn::LoadU(floats, from + i), scale);
    hn::StoreU(hn::IfThenElseZero(kept, value), floats, to + i);
  };
  // Neighbouring lanes draw blocks that are half a vector apart, so that the blocks of each half
  // come out side by side.
  alignas(64) std::uint64_t first[kBlocks];
  for (std::int64_t i = 0; i < kBlocks; ++i) {
    first[i] = static_cast<std::uint64_t>(i / 2 + i % 2 * kBlocks / 2);
  }
  Counters counter;
  counter.w[0] = hn::Add(hn::Load(blocks, first),
                         hn::Set(blocks, static_cast<std::uint64_t>(range.begin / 4)));
  counter.w[1] = hn::Set(blocks, std::uint64_t{position.micro_batch});
  counter.w[2] = hn::Set(blocks, std::uint64_t{position.iteration});
  counter.w[3] =
      hn::Set(blocks, std::uint64_t{std::uint32_t{position.slot} << 24 | position.stream});
  const Keys keys(position.seed);
  const std::int64_t whole = range.begin + (range.end - range.begin) / kElements * kElements;
  for (std::int64_t i = range.begin; i < whole; i += kElements) {
    const Counters drawn = philox(counter, keys);
    const auto low_halves = hn::Set(blocks, std::uint64_t{0xffffffff});
    const auto pair = [&](int word) {
      return hn::Or(hn::And(drawn.w[word], low_halves), hn::ShiftLeft<32>(drawn.w[word + 1]));
    };
    const BlockVector low = pair(0), high = pair(2);
    drop(i, hn::InterleaveLower(blocks, low, high));
    drop(i + kElements / 2, hn::InterleaveUpper(blocks, low, high));
    counter.w[0] = hn::Add(counter.w[0], hn::Set(blocks, static_cast<std::uint64_t>(kBlocks)));
  }
  return whole;
}

#endif

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(drop_vectors);

namespace {

constexpr std::int64_t kElementsAtOnce = 1 << 16;  // by one thread; whole vectors of blocks

class DropoutKernel final : public Kernel {
 public:
  explicit DropoutKernel(const DropoutForward& dropout)
      : dropout_(dropout), vectors_(plane_vectors_supported()) {}

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    run_together(operands, random, Crew(scratch));
  }
  void run_together(std::span<void* const> operands, const runtime::RandomPosition& random,
                    const Crew& crew) const override {
    crew.run((dropout_.elements + kElementsAtOnce - 1) / kElementsAtOnce, [&](std::int64_t i, int) {
      run_elements(operands, random,
                   {i * kElementsAtOnce, std::min((i + 1) * kElementsAtOnce, dropout_.elements)});
    });
  }

  bool runs_elements() const override { return true; }
  void run_elements(std::span<void* const> operands, const runtime::RandomPosition& random,
                    const ElementRange& range) const override {
    const KernelCall call{operands, random};
    const auto* from = call.operand<const float>(0);
    auto* to = call.operand<float>(1);
    runtime::RandomPosition position = random;
    position.stream = dropout_.stream;
    const auto drop = [&](std::int64_t begin, std::int64_t end) {
      reference::drop(from, to, begin, end, dropout_.rate, position);
    };
    // Four elements share a block of numbers.
    const std::int64_t whole = std::min((range.begin + 3) / 4 * 4, range.end);
    drop(range.begin, whole);
    const std::int64_t done = vectors_ ? HWY_DYNAMIC_DISPATCH(drop_vectors)(
                                             from, to, dropout_, position, {whole, range.end})
                                       : whole;
    drop(done, range.end);
  }

 private:
  DropoutForward dropout_;
  bool vectors_;
};

}  // namespace

std::uint64_t dropout_threshold(double rate) {
  return static_cast<std::uint64_t>(std::max(0.0, std::ceil(rate * 0x1p32 - 0.5)));
}

std::unique_ptr<Kernel> make_kernel(const DropoutForward& dropout) {
  return std::make_unique<DropoutKernel>(dropout);
}

std::unique_ptr<Kernel> make_kernel(const DropoutBackward& dropout) {
  return make_kernel(DropoutForward{dropout.elements, dropout.rate, dropout.stream});
}

}  // namespace troupe::model::cpu

#endif
