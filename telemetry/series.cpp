#include "telemetry/series.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"

namespace troupe::telemetry {
namespace {

// One point for all that two stand for.
SeriesPoint merged(const SeriesPoint& a, const SeriesPoint& b) {
  const std::uint64_t count = a.count + b.count;
  const double part = static_cast<double>(a.count) / static_cast<double>(count);
  // Their sum is not needed: it could be beyond a double.
  return {b.x, count, a.mean * part + b.mean * (1.0 - part), std::min(a.low, b.low),
          std::max(a.high, b.high)};
}

}  // namespace

Series::Series(std::size_t capacity) : capacity_(capacity) {
  CHECK(capacity >= 4 && capacity % 2 == 0, "a series has an even capacity of at least 4");
}

void Series::add(std::uint64_t x, double value) {
  if (!std::isfinite(value) || (!points_.empty() && x < points_.back().x)) return;
  ++taken_;
  last_ = value;
  const SeriesPoint point{x, 1, value, value, value};
  if (!points_.empty() && points_.back().count < width_) {
    points_.back() = merged(points_.back(), point);
    return;
  }
  if (points_.size() == capacity_) {
    halve();
  }
  points_.push_back(point);
}

// All points are full, and there is an even number of them.
void Series::halve() {
  for (std::size_t i = 0; i < points_.size() / 2; ++i) {
    points_[i] = merged(points_[2 * i], points_[2 * i + 1]);
  }
  points_.resize(points_.size() / 2);
  width_ *= 2;
}

}  // namespace troupe::telemetry
