#pragma once

// Sums that do not depend on the order of adding nor on how they are split: every number becomes a
// multiple of 2^-48 first, and integers of 128 bits are added. For physics figures, whose sizes are
// known; gradients use model/exact_sum.h.

#include <cmath>
#include <cstdint>

#include "runtime/base/error.h"

namespace troupe::model {

// Any thread, one at a time. 2^28 numbers of any permitted size fit.
class FixedSum {
 public:
  // |value| < 2^50 and finite, CHECKed. Rounded to the nearest multiple of 2^-48.
  void add(double value) {
    CHECK(std::abs(value) < 0x1p50, "a figure of a shower is out of all proportion");
    sum_ += static_cast<Integer>(std::nearbyint(value * kScale));
  }
  void merge(const FixedSum& other) { sum_ += other.sum_; }

  double value() const { return static_cast<double>(sum_) / kScale; }
  // value() / count, 0 for a count of 0.
  double mean(std::int64_t count) const {
    return count == 0 ? 0.0 : value() / static_cast<double>(count);
  }

  bool operator==(const FixedSum&) const = default;

 private:
  // NOLINTNEXTLINE(modernize-use-using): __extension__ goes with typedef only
  __extension__ typedef __int128 Integer;
  static constexpr double kScale = 0x1p48;

  Integer sum_ = 0;
};

}  // namespace troupe::model
