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

// A point that changes has the newest version, and so has every point after the curve was halved.
void Curves::add(std::string_view name, std::uint64_t x, double value, std::uint64_t version,
                 bool is_sample) {
  auto found = curves_.find(name);
  if (found == curves_.end()) {
    if (curves_.size() >= most_ - (is_sample ? most_ / 4 : 0)) {
      ++left_out_;
      return;
    }
    found = curves_.emplace(name, Curve{Series(points_), {}}).first;
  }
  auto& [series, versions] = found->second;
  const std::uint64_t width = series.width(), taken = series.taken();
  series.add(x, value);
  if (series.taken() == taken) return;
  versions.resize(series.points().size());
  versions.back() = version;
  if (series.width() != width) std::fill(versions.begin(), versions.end(), version);
}

std::vector<std::pair<std::string, SeriesNews>> Curves::since(std::uint64_t version) const {
  std::vector<std::pair<std::string, SeriesNews>> news;
  for (const auto& [name, curve] : curves_) {
    const auto& [series, versions] = curve;
    // Versions never fall along a curve: either its last point changes or all do.
    const auto from =
        std::upper_bound(versions.begin(), versions.end(), version) - versions.begin();
    const auto& points = series.points();
    if (from == std::ssize(points)) continue;
    news.emplace_back(name, SeriesNews{series.width(),
                                       static_cast<std::size_t>(from),
                                       {points.begin() + from, points.end()}});
  }
  return news;
}

std::vector<RecordPoint> Curves::latest() const {
  std::vector<RecordPoint> all;
  for (const auto& [name, curve] : curves_) {
    if (curve.series.taken() > 0) all.push_back({name, curve.series.last()});
  }
  return all;
}

}  // namespace troupe::telemetry
