#include "model/physics/histogram.h"

#include <numeric>

#include "runtime/base/error.h"

namespace troupe::model {

Histogram::Histogram(double high, std::int64_t bins)
    : high_(high), counts_(static_cast<std::size_t>(bins) + 1) {
  CHECK(bins >= 1 && high > 0.0, "a histogram needs a range and at least one bin");
}

void Histogram::add(double value, std::int64_t times) {
  CHECK(value >= 0.0, "a histogram took a negative value or NaN");
  // The last count is that of values beyond the range.
  const double bins = static_cast<double>(counts_.size() - 1);
  const double place = value / high_ * bins;
  counts_[place < bins ? static_cast<std::size_t>(place) : counts_.size() - 1] += times;
}

std::int64_t Histogram::entries() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
}

double separation_power(std::span<const double> a, std::span<const double> b) {
  CHECK(a.size() == b.size(), "histograms of different bins do not compare");
  const double of_a = std::accumulate(a.begin(), a.end(), 0.0);
  const double of_b = std::accumulate(b.begin(), b.end(), 0.0);
  if (of_a == 0.0 || of_b == 0.0) return of_a == of_b ? 0.0 : 1.0;
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == 0.0 && b[i] == 0.0) continue;
    const double difference = a[i] / of_a - b[i] / of_b;
    sum += difference * difference / (a[i] / of_a + b[i] / of_b);
  }
  return sum / 2.0;
}

double separation_power(const Histogram& a, const Histogram& b) {
  CHECK(a.high() == b.high(), "histograms of different bins do not compare");
  return separation_power(std::vector<double>(a.counts().begin(), a.counts().end()),
                          std::vector<double>(b.counts().begin(), b.counts().end()));
}

}  // namespace troupe::model
