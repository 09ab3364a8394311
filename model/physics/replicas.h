#pragma once

// Figures of samples that are drawn again (bootstrap, Efron 1979): what uncertainties and floors
// are found from.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/physics/figure.h"
#include "runtime/base/thread_team.h"

namespace troupe::model {

// The values of some figures in `count` draws.
class Replicas {
 public:
  // One for each figure; nothing where the draw does not have it.
  using Values = std::vector<std::optional<double>>;

  Replicas(std::size_t figures, std::size_t count) : values_(figures), count_(count) {}

  // Calls make(draw) for each, on any thread of the team, and keeps the Values that it returns, in
  // the order of the draws. `going_on`, if set, is told the share that is done, as the half of
  // something that is done to `before`, whenever each thread has made one; false ends it early, and
  // is returned.
  template <class Make>
  bool run(runtime::ThreadTeam& team, const std::function<bool(double)>& going_on, double before,
           Make make) {
    const auto at_once = static_cast<std::size_t>(team.threads());
    std::vector<Values> found(count_);
    for (std::size_t first = 0; first < count_; first += at_once) {
      const std::size_t some = std::min(at_once, count_ - first);
      team.run(static_cast<std::int64_t>(some), [&](std::int64_t i, int) {
        const std::size_t draw = first + static_cast<std::size_t>(i);
        found[draw] = make(static_cast<std::uint32_t>(draw));
      });
      const double share = static_cast<double>(first + some) / static_cast<double>(count_);
      if (going_on && !going_on(before + share / 2.0)) return false;
    }
    for (const Values& draw : found) {
      for (std::size_t i = 0; i < values_.size(); ++i) {
        if (draw[i]) values_[i].push_back(*draw[i]);
      }
    }
    return true;
  }

  // The values of a figure in the draws that have it.
  const std::vector<double>& of(std::size_t figure) const { return values_[figure]; }

 private:
  std::vector<std::vector<double>> values_;
  std::size_t count_;
};

// Standard deviation, divided by n.
double deviation_of(const std::vector<double>& values);

// From distances of equal samples from the ideal: their mean, and what 95 % of them stay within.
// None leave the floor as it is.
void set_floor(Figure& figure, std::vector<double> distances);

}  // namespace troupe::model
