#include "study/expected_improvement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "runtime/base/math.h"

namespace troupe::study {
namespace {

namespace math = runtime::math;

double density(double x) {
  return math::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

// The probability beyond x, above 0.
double tail(double x) {
  const double exponential = math::exp(-0.5 * x * x);
  if (x >= 7.07106781186547) {
    double fraction = x + 0.65;
    for (const double part : {4.0, 3.0, 2.0, 1.0}) fraction = x + part / fraction;
    return exponential / fraction / 2.506628274631;
  }
  double over = 3.52624965998911e-2;
  for (const double part : {0.700383064443688, 6.37396220353165, 33.912866078383, 112.079291497871,
                            221.213596169931, 220.206867912376}) {
    over = over * x + part;
  }
  double under = 8.83883476483184e-2;
  for (const double part : {1.75566716318264, 16.064177579207, 86.7807322029461, 296.564248779674,
                            637.333633378831, 793.826512519948, 440.413735824752}) {
    under = under * x + part;
  }
  return exponential * over / under;
}

// Below this the sum of its two terms has lost its digits, and the first terms of its series at
// -infinity have them.
constexpr double kFarBelow = -10.0;

}  // namespace

double normal_probability(double x) { return x > 0.0 ? 1.0 - tail(x) : tail(-x); }

double expected_improvement(const Posterior& posterior, double best) {
  const double better = best - posterior.mean;
  if (posterior.deviation <= 0.0) return std::max(better, 0.0);
  const double z = better / posterior.deviation;
  return better * normal_probability(z) + posterior.deviation * density(z);
}

// z P(z) + p(z) = p(z) (1/z^2 - 3/z^4 + 15/z^6 - 105/z^8 ...) far below 0.
double log_expected_improvement(const Posterior& posterior, double best) {
  const double z = (best - posterior.mean) / posterior.deviation;
  if (posterior.deviation <= 0.0 || z > kFarBelow) {
    return math::log(expected_improvement(posterior, best));
  }
  const double square = 1.0 / (z * z);
  return math::log(posterior.deviation) - 0.5 * z * z - 0.5 * math::log(2.0 * std::numbers::pi) +
         math::log(square * (1.0 - square * (3.0 - square * (15.0 - square * 105.0))));
}

}  // namespace troupe::study
