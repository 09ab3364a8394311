#pragma once

// The least value of a function nearby, by steps along its axes that become shorter (compass
// search: Kolda, Lewis and Torczon, SIAM Review 45, 2003). It needs no derivative, and gives the
// same place wherever it is computed.

#include <cstddef>
#include <functional>
#include <vector>

namespace troupe::study {

struct DescentOptions {
  double first_step = 0.25;
  double last_step = 0.01;  // halved from the first, and at least this
  std::size_t most_calls = 1000;
};

struct Descent {
  std::vector<double> at;
  double value = 0.0;
};

// An infinite value stands for a place that is not allowed.
inline Descent descend(const std::vector<double>& from, const DescentOptions& options,
                       const std::function<double(const std::vector<double>&)>& function) {
  Descent best{from, function(from)};
  std::size_t calls = 1;
  for (double step = options.first_step; step >= options.last_step;) {
    bool has_moved = false;
    for (std::size_t i = 0; i < from.size(); ++i) {
      for (const double move : {step, -step}) {
        if (calls == options.most_calls) return best;
        std::vector<double> next = best.at;
        next[i] += move;
        ++calls;
        const double value = function(next);
        if (!(value < best.value)) continue;
        best = {std::move(next), value};
        has_moved = true;
        break;
      }
    }
    if (!has_moved) step *= 0.5;
  }
  return best;
}

}  // namespace troupe::study
