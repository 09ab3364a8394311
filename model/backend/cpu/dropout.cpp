#include "model/backend/cpu/dropout.h"

#include <algorithm>
#include <cmath>

#include "model/backend/kernel_call.h"
#include "model/backend/reference/dropout.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TROUPE_AVX2 __attribute__((target("avx2")))

namespace troupe::model::cpu {
namespace {

// The constants of Philox 4x32 (runtime/base/random.cpp).
constexpr std::int64_t kMultiplier0 = 0xD2511F53;
constexpr std::int64_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;

constexpr std::int64_t kBlocks = 4;              // in one vector: one block per 64-bit lane
constexpr std::int64_t kElements = 4 * kBlocks;  // drawn by one vector

// Each word of four blocks stands in the low halves of the lanes; the high halves hold leftovers,
// which the 32-bit products ignore.
struct Words {
  __m256i w[4];
};

TROUPE_AVX2 inline Words philox(Words c, std::uint64_t key) {
  const __m256i multiplier0 = _mm256_set1_epi64x(kMultiplier0);
  const __m256i multiplier1 = _mm256_set1_epi64x(kMultiplier1);
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const __m256i product0 = _mm256_mul_epu32(multiplier0, c.w[0]);
    const __m256i product1 = _mm256_mul_epu32(multiplier1, c.w[2]);
    const __m256i mixed0 = _mm256_xor_si256(c.w[1], _mm256_set1_epi64x(key0));
    const __m256i mixed1 = _mm256_xor_si256(c.w[3], _mm256_set1_epi64x(key1));
    c.w[0] = _mm256_xor_si256(_mm256_srli_epi64(product1, 32), mixed0);
    c.w[1] = product1;
    c.w[2] = _mm256_xor_si256(_mm256_srli_epi64(product0, 32), mixed1);
    c.w[3] = product0;
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return c;
}

// Words in the order of their elements: the four of block 0, of block 1, ...
TROUPE_AVX2 inline void in_element_order(const Words& c, __m256i& first, __m256i& second) {
  const __m256i low = _mm256_blend_epi32(c.w[0], _mm256_slli_epi64(c.w[1], 32), 0xAA);
  const __m256i high = _mm256_blend_epi32(c.w[2], _mm256_slli_epi64(c.w[3], 32), 0xAA);
  const __m256i even = _mm256_unpacklo_epi64(low, high);  // blocks 0 and 2
  const __m256i odd = _mm256_unpackhi_epi64(low, high);   // blocks 1 and 3
  first = _mm256_permute2x128_si256(even, odd, 0x20);
  second = _mm256_permute2x128_si256(even, odd, 0x31);
}

TROUPE_AVX2 inline void drop_eight(const float* from, float* to, __m256i words, __m256i threshold,
                                   __m256 scale) {
  const __m256i kept = _mm256_cmpeq_epi32(_mm256_max_epu32(words, threshold), words);
  const __m256 value = _mm256_mul_ps(_mm256_loadu_ps(from), scale);
  _mm256_storeu_ps(to, _mm256_and_ps(value, _mm256_castsi256_ps(kept)));
}

// Whole vectors of elements; the number done comes back.
TROUPE_AVX2 std::int64_t drop_vectors(const float* from, float* to, const DropoutForward& dropout,
                                      const runtime::RandomPosition& position) {
  const std::uint64_t limit = dropout_threshold(dropout.rate);
  if (limit >> 32 != 0) return 0;
  const __m256i threshold = _mm256_set1_epi32(static_cast<int>(static_cast<std::uint32_t>(limit)));
  const __m256 scale = _mm256_set1_ps(static_cast<float>(1.0 / (1.0 - dropout.rate)));
  const std::int64_t whole = dropout.elements / kElements * kElements;
  Words counter;
  counter.w[0] = _mm256_setr_epi64x(0, 1, 2, 3);
  counter.w[1] = _mm256_set1_epi64x(position.micro_batch);
  counter.w[2] = _mm256_set1_epi64x(position.iteration);
  counter.w[3] = _mm256_set1_epi64x(std::uint32_t{position.slot} << 24 | position.stream);
  for (std::int64_t i = 0; i < whole; i += kElements) {
    __m256i first, second;
    in_element_order(philox(counter, position.seed), first, second);
    drop_eight(from + i, to + i, first, threshold, scale);
    drop_eight(from + i + 8, to + i + 8, second, threshold, scale);
    counter.w[0] = _mm256_add_epi64(counter.w[0], _mm256_set1_epi64x(kBlocks));
  }
  return whole;
}

bool vectors_supported() { return __builtin_cpu_supports("avx2") != 0; }

}  // namespace
}  // namespace troupe::model::cpu

#else

namespace troupe::model::cpu {
namespace {

std::int64_t drop_vectors(const float*, float*, const DropoutForward&,
                          const runtime::RandomPosition&) {
  return 0;
}

bool vectors_supported() { return false; }

}  // namespace
}  // namespace troupe::model::cpu

#endif

namespace troupe::model::cpu {
namespace {

class DropoutKernel final : public Kernel {
 public:
  explicit DropoutKernel(const DropoutForward& dropout)
      : dropout_(dropout), vectors_(vectors_supported()) {}

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const auto* from = call.operand<const float>(0);
    auto* to = call.operand<float>(1);
    runtime::RandomPosition position = random;
    position.stream = dropout_.stream;
    const std::int64_t done = vectors_ ? drop_vectors(from, to, dropout_, position) : 0;
    reference::drop(from, to, done, dropout_.elements, dropout_.rate, position);
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
