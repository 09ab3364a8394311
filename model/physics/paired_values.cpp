#include "model/physics/paired_values.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/physics/histogram.h"
#include "runtime/base/error.h"

namespace troupe::model {
namespace {

constexpr DistanceRule kDistances[] = {
    {"kolmogorov", "largest difference of the cumulative distributions",
     "Kolmogorov and Smirnov; 3DGAN: get_sums", &PairedValues::kolmogorov},
    {"chi_square", "chi-square of the histograms / degrees of freedom", "Gagunashvili 2010",
     &PairedValues::chi_square},
    {"separation", "separation power", "CaloChallenge, code/evaluate.py",
     &PairedValues::separation},
    {"wasserstein", "Wasserstein distance / width of the data", "Wasserstein-1",
     &PairedValues::wasserstein}};

double sum_of(Times times) { return std::accumulate(times.begin(), times.end(), 0.0); }

std::vector<std::uint32_t> bins_of(std::span<const double> values, double low, double high,
                                   std::size_t bins) {
  std::vector<std::uint32_t> found;
  const auto last = static_cast<double>(bins - 1);
  for (const double value : values) {
    const double place = (value - low) / (high - low) * static_cast<double>(bins);
    found.push_back(static_cast<std::uint32_t>(std::clamp(std::floor(place), 0.0, last)));
  }
  return found;
}

double deviation_of(std::span<const double> values, Times times) {
  const double count = sum_of(times);
  // One that counts, so that the deviation is exactly 0 where none varies.
  const auto counts = std::ranges::find_if(times, [](std::uint32_t count) { return count > 0; });
  const double origin =
      counts == times.end() ? 0.0 : values[static_cast<std::size_t>(counts - times.begin())];
  double mean = 0.0, square = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) mean += times[i] * (values[i] - origin) / count;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference = values[i] - origin - mean;
    square += times[i] * difference * difference / count;
  }
  return std::sqrt(square);
}

}  // namespace

PairedValues::PairedValues(std::span<const double> data, std::span<const double> generated,
                           double low, double high, std::size_t bins)
    : data_size_(data.size()),
      generated_size_(generated.size()),
      data_bins_(bins_of(data, low, high, bins)),
      generated_bins_(bins_of(generated, low, high, bins)),
      data_(data.begin(), data.end()),
      bins_(bins) {
  CHECK(bins >= 1 && low < high, "a histogram needs a range and a bin");
  for (std::uint32_t i = 0; i < data.size(); ++i) sorted_.push_back({data[i], i, false});
  for (std::uint32_t i = 0; i < generated.size(); ++i) sorted_.push_back({generated[i], i, true});
  for (const Value& each : sorted_) CHECK(std::isfinite(each.value), "a value is not finite");
  std::sort(sorted_.begin(), sorted_.end(),
            [](const Value& a, const Value& b) { return a.value < b.value; });
}

template <class Each>
void PairedValues::walk(Times data, Times generated, Each each) const {
  CHECK(data.size() == data_size_ && generated.size() == generated_size_,
        "every value needs the number of times it counts");
  const double of_data = sum_of(data), of_generated = sum_of(generated);
  double below_data = 0.0, below_generated = 0.0;
  for (std::size_t i = 0; i < sorted_.size(); ++i) {
    const Value& here = sorted_[i];
    (here.generated ? below_generated : below_data) +=
        (here.generated ? generated : data)[here.index];
    const double step = i + 1 < sorted_.size() ? sorted_[i + 1].value - here.value : 0.0;
    if (step == 0.0) continue;
    each(std::abs(below_data / of_data - below_generated / of_generated), step);
  }
}

double PairedValues::kolmogorov(Times data, Times generated) const {
  if (sum_of(data) == 0.0 || sum_of(generated) == 0.0) return 1.0;
  double largest = 0.0;
  walk(data, generated,
       [&](double difference, double) { largest = std::max(largest, difference); });
  return largest;
}

double PairedValues::wasserstein(Times data, Times generated) const {
  if (sum_of(data) == 0.0 || sum_of(generated) == 0.0) return 1.0;
  double area = 0.0;
  walk(data, generated, [&](double difference, double step) { area += difference * step; });
  const double deviation = deviation_of(data_, data);
  return deviation > 0.0 ? area / deviation : area;
}

PairedValues::Counts PairedValues::counts(Times data, Times generated) const {
  CHECK(data.size() == data_size_ && generated.size() == generated_size_,
        "every value needs the number of times it counts");
  Counts found{std::vector<double>(bins_), std::vector<double>(bins_)};
  for (std::size_t i = 0; i < data.size(); ++i) found.data[data_bins_[i]] += data[i];
  for (std::size_t i = 0; i < generated.size(); ++i) {
    found.generated[generated_bins_[i]] += generated[i];
  }
  found.all_data = sum_of(data);
  found.all_generated = sum_of(generated);
  return found;
}

double PairedValues::separation(Times data, Times generated) const {
  const Counts found = counts(data, generated);
  return separation_power(found.data, found.generated);
}

double PairedValues::separation_of_turned(Turned data, Turned generated) const {
  CHECK(data.size() == data_size_ && generated.size() == generated_size_,
        "every value is of one of the samples");
  std::vector<double> first(bins_), second(bins_);
  for (std::size_t i = 0; i < data.size(); ++i) {
    (data[i] != 0 ? second : first)[data_bins_[i]] += 1.0;
  }
  for (std::size_t i = 0; i < generated.size(); ++i) {
    (generated[i] != 0 ? first : second)[generated_bins_[i]] += 1.0;
  }
  return separation_power(first, second);
}

double PairedValues::chi_square(Times data, Times generated) const {
  const Counts found = counts(data, generated);
  if (found.all_data == 0.0 || found.all_generated == 0.0) return 0.0;
  const double ratio = std::sqrt(found.all_generated / found.all_data);
  double sum = 0.0;
  std::int64_t filled = 0;
  for (std::size_t i = 0; i < bins_; ++i) {
    const double a = found.data[i], b = found.generated[i];
    if (a + b == 0.0) continue;
    const double difference = ratio * a - b / ratio;
    sum += difference * difference / (a + b);
    ++filled;
  }
  return filled < 2 ? 0.0 : sum / static_cast<double>(filled - 1);
}

std::span<const DistanceRule> distance_rules() { return kDistances; }

}  // namespace troupe::model
