#include "runtime/base/amount_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace troupe::runtime {

// A sum of less than 1e-12 is rounding.
std::string amount_text(double amount) {
  constexpr int kFewest = 2, kMost = 13;
  int decimals = kFewest;
  if (const double size = std::abs(amount); size > 0.0 && size < 0.1) {
    decimals = static_cast<int>(std::clamp(1.0 - std::floor(std::log10(size)), 0.0, 99.0));
    if (decimals > kMost) decimals = kFewest;
  }
  return fmt::format("{:.{}f}", amount, decimals);
}

}  // namespace troupe::runtime
