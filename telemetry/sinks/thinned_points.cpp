#include "telemetry/sinks/thinned_points.h"

#include <utility>

namespace troupe::telemetry {

void ThinnedPoints::add(const Record& record) {
  for (const RecordPoint& point : points_of(record)) {
    Sum& sum = sums_[point.series];
    sum.step = record.step;
    sum.time = record.time;
    sum.sum += point.value;
    ++sum.count;
  }
}

std::vector<ThinnedPoints::Point> ThinnedPoints::take() {
  std::vector<Point> points;
  for (const auto& [series, sum] : std::exchange(sums_, {})) {
    points.push_back({series, sum.step, sum.time, sum.sum / static_cast<double>(sum.count)});
  }
  return points;
}

}  // namespace troupe::telemetry
