#include "telemetry/curves.h"

#include <algorithm>

namespace troupe::telemetry {

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
