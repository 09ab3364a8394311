#include "model/physics/roc.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/base/error.h"

namespace troupe::model {
namespace {

struct Weighed {
  float value;
  double low, high;  // how often it counts in each
};

}  // namespace

std::optional<double> area_under_curve(std::span<const float> low, Times times_low,
                                       std::span<const float> high, Times times_high) {
  CHECK(low.size() == times_low.size() && high.size() == times_high.size(),
        "every value needs the number of times it counts");
  // They are in no order.
  const auto is_none = [](float value) { return std::isnan(value); };
  if (std::ranges::any_of(low, is_none) || std::ranges::any_of(high, is_none)) return std::nullopt;
  std::vector<Weighed> all;
  all.reserve(low.size() + high.size());
  double of_low = 0.0, of_high = 0.0;
  for (std::size_t i = 0; i < low.size(); ++i) {
    all.push_back({low[i], static_cast<double>(times_low[i]), 0.0});
    of_low += all.back().low;
  }
  for (std::size_t i = 0; i < high.size(); ++i) {
    all.push_back({high[i], 0.0, static_cast<double>(times_high[i])});
    of_high += all.back().high;
  }
  if (of_low == 0.0 || of_high == 0.0) return std::nullopt;
  std::ranges::sort(all, {}, &Weighed::value);
  double below = 0.0, area = 0.0;
  for (std::size_t first = 0; first < all.size();) {
    double equal_low = 0.0, equal_high = 0.0;
    std::size_t end = first;
    for (; end < all.size() && all[end].value == all[first].value; ++end) {
      equal_low += all[end].low;
      equal_high += all[end].high;
    }
    area += equal_high * (below + equal_low / 2.0);
    below += equal_low;
    first = end;
  }
  return area / of_low / of_high;
}

}  // namespace troupe::model
