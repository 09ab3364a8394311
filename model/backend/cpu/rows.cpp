#include "model/backend/cpu/rows.h"

#include <algorithm>

#include "runtime/base/error.h"

#if defined(__x86_64__)

#include <immintrin.h>

// Instructions for the function alone: code shared with other files must run on any host.
#define TROUPE_AVX2 __attribute__((target("avx2,fma")))

namespace troupe::model::cpu {
namespace {

// Accumulators of one block; with the two operands they nearly fill the sixteen vector registers.
constexpr std::int64_t kMostRows = 12;

enum class Sums { kContinued, kFresh };

template <int kRows, Sums kSums>
TROUPE_AVX2 void multiply_block(const RowProduct& p, std::int64_t first) {
  __m256 sums[kRows];
  float* out = p.out + first * kLanes;
#pragma GCC unroll 12
  for (int m = 0; m < kRows; ++m) {
    sums[m] = kSums == Sums::kFresh ? _mm256_setzero_ps() : _mm256_loadu_ps(out + m * kLanes);
  }
  const std::int64_t stride = p.row_stride;
  const float* b = p.b;
  for (std::int64_t g = 0; g < p.groups; ++g) {
    const float* base = p.a + first * stride + g * p.group_stride;
    for (std::int64_t s = 0; s < p.steps; ++s, base += p.step_stride, b += kLanes) {
      const __m256 right = _mm256_loadu_ps(b);
      // Three bases of four rows each keep the addresses within the general registers.
      const float* bases[3] = {base, base + (kRows > 4 ? 4 * stride : 0),
                               base + (kRows > 8 ? 8 * stride : 0)};
#pragma GCC unroll 12
      for (int m = 0; m < kRows; ++m) {
        const __m256 left = _mm256_broadcast_ss(bases[m / 4] + (m % 4) * stride);
        sums[m] = _mm256_fmadd_ps(left, right, sums[m]);
      }
    }
  }
#pragma GCC unroll 12
  for (int m = 0; m < kRows; ++m) {
    if (kSums == Sums::kFresh) {
      sums[m] = _mm256_add_ps(_mm256_loadu_ps(out + m * kLanes), sums[m]);
    }
    _mm256_storeu_ps(out + m * kLanes, sums[m]);
  }
}

// All ones in the first `count` lanes.
TROUPE_AVX2 __m256i first_lanes(std::int64_t count) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lane);
}

template <int kRows>
TROUPE_AVX2 void dot_block(const RowProduct& p, std::int64_t first) {
  __m256 sums[kRows];
  float* out = p.out + first * kLanes;
#pragma GCC unroll 12
  for (int m = 0; m < kRows; ++m) sums[m] = _mm256_loadu_ps(out + m * kLanes);
  const std::int64_t stride = p.row_stride, rest = p.steps % kLanes;
  const __m256i mask = first_lanes(rest);
  const float* b = p.b;
  for (std::int64_t g = 0; g < p.groups; ++g) {
    const float* base = p.a + first * stride + g * p.group_stride;
    for (std::int64_t s = rest; s < p.steps; s += kLanes, base += kLanes, b += kLanes) {
      const __m256 right = _mm256_loadu_ps(b);
      const float* bases[3] = {base, base + (kRows > 4 ? 4 * stride : 0),
                               base + (kRows > 8 ? 8 * stride : 0)};
#pragma GCC unroll 12
      for (int m = 0; m < kRows; ++m) {
        const __m256 left = _mm256_loadu_ps(bases[m / 4] + (m % 4) * stride);
        sums[m] = _mm256_fmadd_ps(left, right, sums[m]);
      }
    }
    if (rest == 0) continue;
    const __m256 right = _mm256_loadu_ps(b);
    b += kLanes;
    for (int m = 0; m < kRows; ++m) {
      sums[m] = _mm256_fmadd_ps(_mm256_maskload_ps(base + m * stride, mask), right, sums[m]);
    }
  }
#pragma GCC unroll 12
  for (int m = 0; m < kRows; ++m) _mm256_storeu_ps(out + m * kLanes, sums[m]);
}

using Block = void (*)(const RowProduct&, std::int64_t first);

// Divides the rows into blocks of sizes as equal as possible; table[n - 1] does n rows.
void in_blocks(const RowProduct& product, const Block (&table)[kMostRows]) {
  const std::int64_t blocks = (product.rows + kMostRows - 1) / kMostRows;
  std::int64_t first = 0;
  for (std::int64_t i = 1; i <= blocks; ++i) {
    const std::int64_t next = product.rows * i / blocks;
    table[next - first - 1](product, first);
    first = next;
  }
}

template <Sums kSums>
void multiply(const RowProduct& p) {
  static constexpr Block kTable[kMostRows] = {
      multiply_block<1, kSums>,  multiply_block<2, kSums>,  multiply_block<3, kSums>,
      multiply_block<4, kSums>,  multiply_block<5, kSums>,  multiply_block<6, kSums>,
      multiply_block<7, kSums>,  multiply_block<8, kSums>,  multiply_block<9, kSums>,
      multiply_block<10, kSums>, multiply_block<11, kSums>, multiply_block<12, kSums>};
  in_blocks(p, kTable);
}

// The comparisons are false for NaN, which therefore passes.
TROUPE_AVX2 inline __m256 activate_lanes(ActivationKind kind, __m256 slope, __m256 x) {
  if (kind == ActivationKind::kLinear) return x;
  const __m256 negative = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ);
  if (kind == ActivationKind::kRelu) return _mm256_andnot_ps(negative, x);
  return _mm256_blendv_ps(x, _mm256_mul_ps(slope, x), negative);
}

TROUPE_AVX2 inline float sum_of_lanes(__m256 v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

}  // namespace

bool rows_supported() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}

void add_products(const RowProduct& product) { multiply<Sums::kContinued>(product); }

void add_sums_of_products(const RowProduct& product) { multiply<Sums::kFresh>(product); }

void add_dot_products(const RowProduct& product) {
  static constexpr Block kTable[kMostRows] = {
      dot_block<1>, dot_block<2>, dot_block<3>, dot_block<4>,  dot_block<5>,  dot_block<6>,
      dot_block<7>, dot_block<8>, dot_block<9>, dot_block<10>, dot_block<11>, dot_block<12>};
  in_blocks(product, kTable);
}

TROUPE_AVX2 void finish_cells(const float* sums, std::int64_t cells, std::int64_t channels,
                              const float* bias, const Activation& activation, float* y) {
  const __m256i mask = first_lanes(channels);
  const __m256 shift = bias ? _mm256_maskload_ps(bias, mask) : _mm256_setzero_ps();
  const __m256 slope = _mm256_set1_ps(static_cast<float>(activation.slope));
  for (std::int64_t i = 0; i < cells; ++i) {
    const __m256 x = _mm256_add_ps(_mm256_loadu_ps(sums + i * kLanes), shift);
    _mm256_maskstore_ps(y + i * channels, mask, activate_lanes(activation.kind, slope, x));
  }
}

TROUPE_AVX2 void finish_dots(const float* sums, std::int64_t cells, const float* bias,
                             const Activation& activation, float* y) {
  const float shift = bias ? *bias : 0.0f;
  const __m256 slope = _mm256_set1_ps(static_cast<float>(activation.slope));
  for (std::int64_t i = 0; i < cells; ++i) {
    const float x = sum_of_lanes(_mm256_loadu_ps(sums + i * kLanes)) + shift;
    y[i] = _mm256_cvtss_f32(activate_lanes(activation.kind, slope, _mm256_set1_ps(x)));
  }
}

}  // namespace troupe::model::cpu

#else

namespace troupe::model::cpu {

bool rows_supported() { return false; }
void add_products(const RowProduct&) { CHECK(false, "no AVX2 on this host"); }
void add_sums_of_products(const RowProduct&) { CHECK(false, "no AVX2 on this host"); }
void add_dot_products(const RowProduct&) { CHECK(false, "no AVX2 on this host"); }
void finish_cells(const float*, std::int64_t, std::int64_t, const float*, const Activation&,
                  float*) {
  CHECK(false, "no AVX2 on this host");
}
void finish_dots(const float*, std::int64_t, const float*, const Activation&, float*) {
  CHECK(false, "no AVX2 on this host");
}

}  // namespace troupe::model::cpu

#endif
