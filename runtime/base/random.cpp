#include "runtime/base/random.h"

#include <cmath>
#include <numbers>

#include "runtime/base/error.h"
#include "runtime/base/math.h"

namespace troupe::runtime {
namespace {

// The constants of Philox4x32: two multipliers, and what the two words of the key grow by from
// round to round.
constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;

struct NormalPair {
  double cosine;
  double sine;
};

NormalPair box_muller(std::uint32_t first, std::uint32_t second) {
  const double radius = std::sqrt(-2.0 * math::log(uniform(first)));
  const double angle = 2.0 * std::numbers::pi * uniform(second);
  return {radius * math::cos(angle), radius * math::sin(angle)};
}

// The same numbers as random_normal() gives one by one, four from each block.
template <class T>
void fill(const RandomPosition& position, T* out, std::uint32_t count) {
  // The index has 64 bits: 32 bits would wrap behind the last block of the largest count.
  for (std::uint64_t i = 0; i < count; i += 4) {
    const PhiloxBlock block = random_block(position, static_cast<std::uint32_t>(i / 4));
    const NormalPair low = box_muller(block[0], block[1]);
    const NormalPair high = box_muller(block[2], block[3]);
    const double values[4] = {low.cosine, low.sine, high.cosine, high.sine};
    for (std::uint32_t j = 0; j < 4 && i + j < count; ++j) out[i + j] = static_cast<T>(values[j]);
  }
}

}  // namespace

PhiloxBlock philox(PhiloxBlock counter, std::uint64_t key) {
  std::uint32_t key0 = static_cast<std::uint32_t>(key);
  std::uint32_t key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0,
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1,
               static_cast<std::uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

PhiloxBlock random_block(const RandomPosition& position, std::uint32_t element) {
  CHECK(position.stream < (1u << 24), "a stream number has 24 bits");
  return philox({element, position.micro_batch, position.iteration,
                 std::uint32_t{position.slot} << 24 | position.stream},
                position.seed);
}

std::uint32_t random_word(const RandomPosition& position, std::uint32_t index) {
  return random_block(position, index / 4)[index % 4];
}

double uniform(std::uint32_t word) { return (static_cast<double>(word) + 0.5) * 0x1p-32; }

double random_uniform(const RandomPosition& position, std::uint32_t index) {
  return uniform(random_word(position, index));
}

double random_normal(const RandomPosition& position, std::uint32_t index) {
  const PhiloxBlock block = random_block(position, index / 4);
  const std::uint32_t pair = (index % 4) / 2 * 2;
  const NormalPair normal = box_muller(block[pair], block[pair + 1]);
  return index % 2 == 0 ? normal.cosine : normal.sine;
}

void fill_normal(const RandomPosition& position, float* out, std::uint32_t count) {
  fill(position, out, count);
}

void fill_normal(const RandomPosition& position, double* out, std::uint32_t count) {
  fill(position, out, count);
}

std::uint64_t mix64(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

}  // namespace troupe::runtime
