#include "model/rounded_sum.h"

#include <bit>
#include <cmath>

#include "runtime/base/error.h"

namespace troupe::model {
namespace {

// Random words of a block.
constexpr std::int64_t kWords = std::tuple_size_v<runtime::PhiloxBlock>;

}  // namespace

QuantiseReport round_add(std::span<const float> values, std::int16_t k,
                         const runtime::RandomPosition& at, std::int64_t first,
                         std::span<std::int16_t> sum) {
  CHECK(values.size() == sum.size() && first >= 0);
  const std::uint32_t largest = largest_magnitude(values);
  QuantiseReport report = report_of(largest, kNoExponent, 1);
  const double factor = scale_factor(k);
  if (k != kNoExponent && !report.non_finite) {
    const double scaled = static_cast<double>(std::bit_cast<float>(largest)) * factor;
    report.flagged = scaled > kLargestRounded;
  }
  // All-zero values add nothing, whatever the scale.
  if (report.flagged || report.non_finite || largest == 0) return report;
  runtime::PhiloxBlock words{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t element = first + static_cast<std::int64_t>(i);
    if (i == 0 || element % kWords == 0) {
      words = runtime::random_block(at, static_cast<std::uint32_t>(element / kWords));
    }
    const double u = runtime::uniform(words[static_cast<std::size_t>(element % kWords)]);
    const double rounded = std::floor(static_cast<double>(values[i]) * factor + u);
    sum[i] = static_cast<std::int16_t>(sum[i] + static_cast<int>(rounded));
  }
  return report;
}

void add(std::span<const std::int16_t> a, std::span<const std::int16_t> b,
         std::span<std::int16_t> sum) {
  CHECK(a.size() == sum.size() && b.size() == sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<std::int16_t>(a[i] + b[i]);
}

void restore_mean(std::span<const std::int16_t> sum, std::int16_t k, std::uint32_t numbers,
                  std::span<float> out) {
  CHECK(sum.size() == out.size() && numbers > 0);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    out[i] = static_cast<float>(restored_mean(sum[i], k, numbers));
  }
}

std::int16_t rounded_scale_for(std::int16_t max_exponent) {
  CHECK(max_exponent != kNoExponent);
  return static_cast<std::int16_t>(6 - max_exponent);
}

}  // namespace troupe::model
