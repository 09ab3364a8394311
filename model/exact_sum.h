#pragma once

// Sums of floating-point numbers that do not depend on the order of adding: each number becomes a
// 64-bit integer first, q = round to nearest even of (g x 2^k), and integers are added.
//
// With M numbers per sum and |g| < 2^e, k = 50 - ceil(log2 M) - e leaves 12 bits for growth of the
// numbers and keeps 50 - ceil(log2 M) bits of the largest. A number with |q| > 2^62 / M is flagged
// instead of added; the caller measures e anew and starts over. The test looks at single numbers,
// never at partial sums, whose size depends on the order; so M numbers stay below 2^62 together.
//
// Everything here is a pure function of its arguments in IEEE arithmetic, rounding to nearest and
// without flushing of denormals; any thread, no allocation. Ranges of one tensor may be handled in
// any pieces: max_exponent of the whole is the largest of the pieces', the flags combine by or.

#include <algorithm>
#include <cstdint>
#include <span>

namespace troupe::model {

// No element other than zero was seen (exponents), or no exponent has been measured yet (scales).
// Below every exponent, so that the maximum combines exponents.
inline constexpr std::int16_t kNoExponent = INT16_MIN;
// The exponents of the least denormal float and of the largest finite one: every other lies
// between.
inline constexpr std::int16_t kLeastExponent = -148;
inline constexpr std::int16_t kLargestExponent = 128;

struct QuantiseReport {
  std::int16_t max_exponent = kNoExponent;  // smallest e with |g| < 2^e for every element
  bool flagged = false;     // some |q| > 2^62 / M, or k is kNoExponent and some g != 0
  bool non_finite = false;  // a NaN or infinity

  // To that of both values.
  void merge(const QuantiseReport& other) {
    max_exponent = std::max(max_exponent, other.max_exponent);
    flagged |= other.flagged;
    non_finite |= other.non_finite;
  }
};

// Adds the integers of `values` to `sum` (same size). With `flagged` or a non-finite element the
// content of `sum` is of no use; with a non-finite element the report's other fields stay at their
// defaults. k: the tensor's scale, any value; kNoExponent before the first measurement.
QuantiseReport quantise_add(std::span<const float> values, std::int16_t k,
                            std::uint32_t micro_batches, std::span<std::int64_t> sum);
// Bits of the largest |g|. Magnitudes of floats are ordered as their bits are, NaN above infinity.
std::uint32_t largest_magnitude(std::span<const float> values);
// The report of values, at this scale, of which the largest |g| has these bits.
QuantiseReport report_of(std::uint32_t largest_magnitude, std::int16_t k,
                         std::uint32_t micro_batches);
// 2^k, and 0 for kNoExponent; beyond +-900 what acts as k does.
double scale_factor(std::int16_t k);

// sum[i] += other[i]; wraps silently, which quantise_add's bound excludes.
void add(std::span<const std::int64_t> other, std::span<std::int64_t> sum);
// sum[i] = a[i] + b[i], likewise. The three have one size and do not overlap.
void add(std::span<const std::int64_t> a, std::span<const std::int64_t> b,
         std::span<std::int64_t> sum);

// double(sum) x 2^-k / M: two roundings, of sums beyond 2^53 and of the division. 0 when k is
// kNoExponent.
double restored_mean(std::int64_t sum, std::int16_t k, std::uint32_t micro_batches);

// out[i] = float(restored_mean(sum[i], k, M)).
void restore_mean(std::span<const std::int64_t> sum, std::int16_t k, std::uint32_t micro_batches,
                  std::span<float> out);

// 50 - ceil(log2 M) - e, for an e that is not kNoExponent and M >= 1.
std::int16_t scale_for(std::int16_t max_exponent, std::uint32_t micro_batches);

}  // namespace troupe::model
