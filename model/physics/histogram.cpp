#include "model/physics/histogram.h"

#include <numeric>

#include "runtime/base/error.h"

namespace troupe::model {

Histogram::Histogram(double high, std::int64_t bins)
    : high_(high), counts_(static_cast<std::size_t>(bins) + 1) {
  CHECK(bins >= 1 && high > 0.0, "a histogram needs a range and at least one bin");
}

void Histogram::add(double value) {
  CHECK(value >= 0.0, "a histogram took a negative value or NaN");
  // The last count is that of values beyond the range.
  const double bins = static_cast<double>(counts_.size() - 1);
  const double place = value / high_ * bins;
  ++counts_[place < bins ? static_cast<std::size_t>(place) : counts_.size() - 1];
}

void Histogram::merge(const Histogram& other) {
  CHECK(high_ == other.high_ && counts_.size() == other.counts_.size(),
        "histograms of different bins do not merge");
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
}

std::int64_t Histogram::entries() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
}

double separation_power(const Histogram& a, const Histogram& b) {
  CHECK(a.high() == b.high() && a.counts().size() == b.counts().size(),
        "histograms of different bins do not compare");
  const auto of_a = static_cast<double>(a.entries()), of_b = static_cast<double>(b.entries());
  if (of_a == 0.0 || of_b == 0.0) return of_a == of_b ? 0.0 : 1.0;
  double sum = 0.0;
  for (std::size_t i = 0; i < a.counts().size(); ++i) {
    if (a.counts()[i] == 0 && b.counts()[i] == 0) continue;
    const double share_a = static_cast<double>(a.counts()[i]) / of_a;
    const double share_b = static_cast<double>(b.counts()[i]) / of_b;
    sum += (share_a - share_b) * (share_a - share_b) / (share_a + share_b);
  }
  return sum / 2.0;
}

}  // namespace troupe::model
