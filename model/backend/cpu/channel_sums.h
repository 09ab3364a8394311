#pragma once

// Sums over rows, in double, one for each channel: [row][channel] to [channel]. Value i belongs to
// chain i % period (channel_vectors.h), and chains are cut into parts, so that a device finds
// enough of them to add at once. At the end the parts of each chain are added, then the chains of
// each channel.

#include <algorithm>
#include <cstdint>
#include <memory>

#include "model/backend.h"
#include "model/operation.h"

namespace troupe::model::cpu {

struct ChannelSums {
  ChannelSums(std::int64_t rows, std::int64_t channels);

  std::int64_t rows, channels, period;
  std::int64_t parts, part_rows;  // of each chain, and rows of a part, in whole periods

  // Sums of chains: [part][place in the period].
  std::int64_t chains() const { return parts * period; }

  // Calls add(first value, values, first chain) for each part.
  template <class Add>
  void over_parts(const Add& add) const {
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t first = part * part_rows;
      add(first * channels, std::min(part_rows, rows - first) * channels, part * period);
    }
  }
  double total(const double* sums, std::int64_t channel) const {
    double total = 0.0;
    for (std::int64_t place = channel; place < period; place += channels) {
      double chain = 0.0;
      for (std::int64_t i = place; i < chains(); i += period) chain += sums[i];
      total += chain;
    }
    return total;
  }
};

// to[channel] = the sum of its values. `sums` has room for all chains.
void sum_channels(const ChannelSums& channels, const float* values, double* sums, float* to);

std::unique_ptr<Kernel> make_kernel(const SumRows& sum);

}  // namespace troupe::model::cpu
