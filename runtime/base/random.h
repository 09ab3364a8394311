#pragma once

// Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC11). There is no generator state: a number is a pure function of the run's seed and
// of the place it is used at, so the same place draws the same number on any worker.

#include <array>
#include <cstdint>

namespace troupe::runtime {

// Version of the counter layout and of the conversions below; stored in checkpoints.
inline constexpr std::uint32_t kRandomVersion = 1;

// The place at which a number is drawn. counter = (element, micro_batch, iteration, slot << 24 |
// stream).
struct RandomPosition {
  std::uint64_t seed = 0;
  std::uint32_t micro_batch = 0;
  std::uint32_t iteration = 0;
  std::uint8_t slot = 0;     // position in the schedule
  std::uint32_t stream = 0;  // which use in the step; under 2^24, see streams in model/streams.h

  bool operator==(const RandomPosition&) const = default;
};

using PhiloxBlock = std::array<std::uint32_t, 4>;

// Ten rounds over one counter block.
PhiloxBlock philox(PhiloxBlock counter, std::uint64_t key);

// The block for `element` (a block index, not a number index) at a position.
PhiloxBlock random_block(const RandomPosition& position, std::uint32_t element);

// Number i of a position is word i % 4 of block i / 4.
std::uint32_t random_word(const RandomPosition& position, std::uint32_t index);

// Uniform in (0, 1): (word + 0.5) / 2^32, exact in double.
double uniform(std::uint32_t word);
double random_uniform(const RandomPosition& position, std::uint32_t index);

// Standard normal number `index`: Box-Muller on words 2 (index / 2) and 2 (index / 2) + 1; even
// indices take the cosine, odd ones the sine. log, sin and cos are those of runtime/base/math.h.
double random_normal(const RandomPosition& position, std::uint32_t index);

// Fills out[i] = random_normal(position, i), block by block.
void fill_normal(const RandomPosition& position, float* out, std::uint32_t count);
void fill_normal(const RandomPosition& position, double* out, std::uint32_t count);

// A bijective 64-bit mixer (the finaliser of SplitMix64), for hashes of small numbers.
std::uint64_t mix64(std::uint64_t value);

}  // namespace troupe::runtime
