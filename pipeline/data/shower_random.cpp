#include "pipeline/data/shower_random.h"

#include <cmath>
#include <numbers>

#include "runtime/base/error.h"
#include "runtime/base/math.h"
#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace math = runtime::math;
namespace {

constexpr std::uint32_t kSlot = 0xFFu << 24;
// Half of log(2 pi).
constexpr double kHalfLogTwoPi = 0.91893853320467274178;

std::uint32_t poisson_by_search(double mean, double u) {
  double probability = math::exp(-mean);
  double sum = probability;
  std::uint32_t k = 0;
  // The bound is far beyond what (0, 1 - 2^-33) reaches; it stands against rounding in `sum`.
  while (u > sum && k < 200) {
    ++k;
    probability *= mean / k;
    sum += probability;
  }
  return k;
}

}  // namespace

double log_gamma(double x) {
  CHECK(x > 0.0);
  double product = 1.0;
  while (x < 10.0) {
    product *= x;
    x += 1.0;
  }
  const double r = 1.0 / x;
  const double r2 = r * r;
  const double series =
      r * (1.0 / 12 - r2 * (1.0 / 360 - r2 * (1.0 / 1260 - r2 * (1.0 / 1680 - r2 / 1188))));
  return (x - 0.5) * math::log(x) - x + kHalfLogTwoPi + series - math::log(product);
}

ShowerRandom::ShowerRandom(std::uint64_t seed, std::uint64_t event, ShowerStream stream)
    : seed_(seed), event_(event), stream_(kSlot | static_cast<std::uint32_t>(stream)) {
  next_ = words_.size();
}

void ShowerRandom::refill() {
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const runtime::PhiloxBlock block =
        runtime::philox({block_++, static_cast<std::uint32_t>(event_),
                         static_cast<std::uint32_t>(event_ >> 32), stream_},
                        seed_);
    for (std::size_t j = 0; j < 4; ++j) words_[4 * i + j] = block[j];
  }
  next_ = 0;
}

double ShowerRandom::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2.0 * math::log(uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_ = radius * math::sin(angle);
  has_spare_ = true;
  return radius * math::cos(angle);
}

double ShowerRandom::exponential() { return -math::log(uniform()); }

double ShowerRandom::gamma(double shape) {
  CHECK(shape > 0.0);
  if (shape < 1.0) {
    const double full = gamma(shape + 1.0);
    return full * math::pow(uniform(), 1.0 / shape);
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = normal();
    const double cube_root = 1.0 + c * x;
    const double u = uniform();
    if (cube_root <= 0.0) continue;
    const double v = cube_root * cube_root * cube_root;
    const double x2 = x * x;
    if (u < 1.0 - 0.0331 * x2 * x2) return d * v;
    if (math::log(u) < 0.5 * x2 + d * (1.0 - v + math::log(v))) return d * v;
  }
}

std::uint32_t ShowerRandom::poisson(double mean) {
  CHECK(mean >= 0.0 && mean < 1e9);
  if (mean == 0.0) return 0;
  if (mean < 10.0) return poisson_by_search(mean, uniform());
  const double b = 0.931 + 2.53 * std::sqrt(mean);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double v_r = 0.9277 - 3.6224 / (b - 2.0);
  for (;;) {
    const double u = uniform() - 0.5;
    const double v = uniform();
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2.0 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= v_r) return static_cast<std::uint32_t>(k);
    if (k < 0.0 || (us < 0.013 && v > us)) continue;
    const double left = math::log(v * inverse_alpha / (a / (us * us) + b));
    if (left <= k * math::log(mean) - mean - log_gamma(k + 1.0)) {
      return static_cast<std::uint32_t>(k);
    }
  }
}

}  // namespace troupe::pipeline
