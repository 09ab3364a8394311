#pragma once

// Sums of numbers that are rounded at random to 7 bits and a sign, in 16-bit integers. They take a
// quarter of the room of exact sums (model/exact_sum.h), and no order of adding changes them.
//
// q = floor(g x 2^k + u), with u drawn uniformly from (0, 1). So q is one of the two integers
// beside g x 2^k, and g x 2^k itself in the mean: nothing has to be kept of what rounding drops.
// Where |g| < 2^e, k = 6 - e is the largest scale with which |q| stays below 127 for sure. So it
// leaves room for numbers of up to 1.98 x 2^e. A larger one is flagged instead of added, as in an
// exact sum: nothing is ever cut off, which would move the mean. The caller measures e anew and
// starts over.
//
// Pure functions of their arguments; any thread, no allocation. Ranges of one vector may be handled
// in any pieces.

#include <cstdint>
#include <span>

#include "model/exact_sum.h"
#include "runtime/base/random.h"

namespace troupe::model {

// |q| of one number is at most this.
inline constexpr std::int16_t kLargestRounded = 127;
// So many numbers per sum fit 16 bits.
inline constexpr std::uint32_t kMostRounded = 256;
static_assert(kMostRounded * kLargestRounded <= INT16_MAX);

// Adds the integers of `values`, elements [first, first + values.size()) of a vector, to `sum`
// (same size). `at`: of the vector; element i is rounded by random_word(at, i). k: the tensor's
// scale; kNoExponent before the first measurement. The report is that of quantise_add(), and
// flagged when some |g x 2^k| > 127. With `flagged` or `non_finite` nothing is added.
QuantiseReport round_add(std::span<const float> values, std::int16_t k,
                         const runtime::RandomPosition& at, std::int64_t first,
                         std::span<std::int16_t> sum);

// sum[i] = a[i] + b[i]; wraps, which kMostRounded excludes. The three have one size.
void add(std::span<const std::int16_t> a, std::span<const std::int16_t> b,
         std::span<std::int16_t> sum);

// out[i] = float(double(sum[i]) x 2^-k / M); 0 when k is kNoExponent.
void restore_mean(std::span<const std::int16_t> sum, std::int16_t k, std::uint32_t numbers,
                  std::span<float> out);

// 6 - e, for an e that is not kNoExponent.
std::int16_t rounded_scale_for(std::int16_t max_exponent);

}  // namespace troupe::model
