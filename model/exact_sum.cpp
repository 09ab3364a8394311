#include "model/exact_sum.h"

#include <algorithm>
#include <bit>

#include "runtime/base/error.h"

namespace troupe::model {
namespace {

// Elements that are measured and then added while they are in the first-level cache.
constexpr std::size_t kBlock = 1024;

constexpr std::uint32_t kInfinityBits = 0x7f800000u;

// Adding 1.5 x 2^52 to |x| < 2^51 leaves a double whose last bit is worth 1: the addition rounds to
// nearest even, and the integer stands in the mantissa.
constexpr double kRounder = 0x1.8p52;
constexpr double kRounderLimit = 0x1p51;

// Scales beyond +-900 act like this bound, beyond which nothing changes: every float but zero is
// flagged or becomes zero, and means become zero or infinite. All products below stay inside the
// double range.
constexpr int kScaleBound = 900;

double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

// Smallest e with |g| < 2^e, from the bits of a finite |g|.
std::int16_t exponent_of(std::uint32_t magnitude) {
  if (magnitude == 0) return kNoExponent;
  const int biased = static_cast<int>(magnitude >> 23);
  const int exponent = biased > 0 ? biased - 126 : std::bit_width(magnitude) - 149;
  return static_cast<std::int16_t>(exponent);
}

std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// |x| < 2^51 for all.
void add_small(std::span<const float> values, double factor, std::int64_t* sum) {
  constexpr auto kRounderBits = std::bit_cast<std::int64_t>(kRounder);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double rounded = static_cast<double>(values[i]) * factor + kRounder;
    sum[i] = wrapping_sum(sum[i], std::bit_cast<std::int64_t>(rounded) - kRounderBits);
  }
}

// |x| <= 2^62 for all. A float has 24 bits, so x from 2^23 on is an integer already.
void add_large(std::span<const float> values, double factor, std::int64_t* sum) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(values[i]) * factor;
    const bool whole = x >= kRounderLimit || x <= -kRounderLimit;
    const double rounded = (x + kRounder) - kRounder;
    sum[i] = wrapping_sum(sum[i], static_cast<std::int64_t>(whole ? x : rounded));
  }
}

// static_cast<double>(value), of which common instruction sets have no vector form: the halves are
// put into the mantissas of 2^84 and 2^52, and one addition rounds.
double to_double(std::int64_t value) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  const auto bits = static_cast<std::uint64_t>(value);
  const auto high =
      std::bit_cast<double>(((bits ^ kSign) >> 32) | std::bit_cast<std::uint64_t>(0x1p84));
  const auto low =
      std::bit_cast<double>((bits & 0xffffffffu) | std::bit_cast<std::uint64_t>(0x1p52));
  return (high - (0x1p84 + 0x1p63 + 0x1p52)) + low;
}

// Rounding is monotone, so the largest element decides for all.
bool exceeds_limit(double largest, std::uint32_t micro_batches) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 62;
  if (largest > static_cast<double>(kLimit)) return true;
  const double rounded = largest < kRounderLimit ? (largest + kRounder) - kRounder : largest;
  return static_cast<std::int64_t>(rounded) > kLimit / micro_batches;
}

}  // namespace

double scale_factor(std::int16_t k) {
  if (k == kNoExponent) return 0.0;
  return power_of_two(std::clamp<int>(k, -kScaleBound, kScaleBound));
}

std::uint32_t largest_magnitude(std::span<const float> values) {
  std::int32_t largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::bit_cast<std::int32_t>(value) & 0x7fffffff);
  }
  return static_cast<std::uint32_t>(largest);
}

QuantiseReport report_of(std::uint32_t largest_magnitude, std::int16_t k,
                         std::uint32_t micro_batches) {
  if (largest_magnitude >= kInfinityBits) return {.non_finite = true};
  const double largest = std::bit_cast<float>(largest_magnitude);
  return {.max_exponent = exponent_of(largest_magnitude),
          .flagged = k == kNoExponent ? largest_magnitude != 0
                                      : exceeds_limit(largest * scale_factor(k), micro_batches)};
}

QuantiseReport quantise_add(std::span<const float> values, std::int16_t k,
                            std::uint32_t micro_batches, std::span<std::int64_t> sum) {
  CHECK(values.size() == sum.size() && micro_batches > 0);
  const double factor = scale_factor(k);
  std::uint32_t largest_of_all = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    const std::uint32_t largest = largest_magnitude(block);
    largest_of_all = std::max(largest_of_all, largest);
    // The sum is of no use any more, but the largest exponent is still measured, for the next
    // attempt.
    const QuantiseReport report = report_of(largest_of_all, k, micro_batches);
    if (report.flagged || report.non_finite || k == kNoExponent) continue;
    if (static_cast<double>(std::bit_cast<float>(largest)) * factor < kRounderLimit) {
      add_small(block, factor, sum.data() + begin);
    } else {
      add_large(block, factor, sum.data() + begin);
    }
  }
  return report_of(largest_of_all, k, micro_batches);
}

void add(std::span<const std::int64_t> other, std::span<std::int64_t> sum) {
  CHECK(other.size() == sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = wrapping_sum(sum[i], other[i]);
}

void add(std::span<const std::int64_t> a, std::span<const std::int64_t> b,
         std::span<std::int64_t> sum) {
  CHECK(a.size() == sum.size() && b.size() == sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = wrapping_sum(a[i], b[i]);
}

double restored_mean(std::int64_t sum, std::int16_t k, std::uint32_t micro_batches) {
  if (k == kNoExponent) return 0.0;
  return static_cast<double>(sum) * (1.0 / scale_factor(k)) / micro_batches;
}

void restore_mean(std::span<const std::int64_t> sum, std::int16_t k, std::uint32_t micro_batches,
                  std::span<float> out) {
  CHECK(sum.size() == out.size() && micro_batches > 0);
  if (k == kNoExponent) {
    std::fill(out.begin(), out.end(), 0.0f);
    return;
  }
  const double inverse = 1.0 / scale_factor(k);  // exact: a power of two
  if (std::has_single_bit(micro_batches)) {
    const double factor = inverse / micro_batches;  // exact as well, and so a product will do
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<float>(to_double(sum[i]) * factor);
    }
    return;
  }
  const double count = micro_batches;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(to_double(sum[i]) * inverse / count);
  }
}

std::int16_t scale_for(std::int16_t max_exponent, std::uint32_t micro_batches) {
  CHECK(max_exponent != kNoExponent && micro_batches > 0);
  return static_cast<std::int16_t>(50 - std::bit_width(micro_batches - 1) - max_exponent);
}

}  // namespace troupe::model
