#include "runtime/base/math.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "runtime/base/math_series.h"

namespace troupe::runtime::math {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Coefficients first to last of c0 + x (c1 + x (c2 + ...)).
template <std::size_t N>
double horner(const std::array<double, N>& coefficients, double x) {
  double sum = coefficients[N - 1];
  for (std::size_t i = N - 1; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

// x 2^n, exact unless the result is subnormal or overflows.
double scale(double x, int n) {
  if (n >= -1022 && n <= 1023) {
    return x * std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
  }
  return std::ldexp(x, n);
}

double sin_reduced(double x) { return x * horner(kSin, x * x); }
double cos_reduced(double x) { return horner(kCos, x * x); }

struct Quadrant {
  double rest;  // in [-pi/4, pi/4]
  int number;   // 0 to 3
};

Quadrant reduce_angle(double x) {
  const double turns = std::nearbyint(x * (2.0 / std::numbers::pi));
  const double rest = ((x - turns * kHalfPi1) - turns * kHalfPi2) - turns * kHalfPi3;
  return {rest, static_cast<int>(static_cast<std::int64_t>(turns) & 3)};
}

}  // namespace

double exp(double x) {
  if (!(x < 709.79)) return x > 0 ? kInfinity : x;  // NaN comes back as it is
  if (x < -745.2) return 0.0;
  const double n = std::nearbyint(x * std::numbers::log2e);
  const double rest = (x - n * kLn2High) - n * kLn2Low;
  return scale(horner(kExp, rest), static_cast<int>(n));
}

double log(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -kInfinity : kNan;
  if (x == kInfinity) return x;
  int shift = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    shift = -54;
  }
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023 + shift;
  double mantissa = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);
  if (mantissa > std::numbers::sqrt2) {
    mantissa *= 0.5;
    ++exponent;
  }
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double fraction = 2.0 * s * horner(kAtanh, s * s);
  return exponent * kLn2High + (exponent * kLn2Low + fraction);
}

double pow(double x, double p) {
  if (x == 0.0) return p > 0.0 ? 0.0 : (p == 0.0 ? 1.0 : kInfinity);
  return exp(p * log(x));
}

double sin(double x) {
  if (!std::isfinite(x)) return kNan;
  const Quadrant q = reduce_angle(x);
  const double value = q.number % 2 == 0 ? sin_reduced(q.rest) : cos_reduced(q.rest);
  return q.number < 2 ? value : -value;
}

double cos(double x) {
  if (!std::isfinite(x)) return kNan;
  const Quadrant q = reduce_angle(x);
  const double value = q.number % 2 == 0 ? cos_reduced(q.rest) : sin_reduced(q.rest);
  return q.number == 0 || q.number == 3 ? value : -value;
}

double atan(double x) {
  if (std::isnan(x)) return x;
  const double size = std::fabs(x);
  const bool inverted = size > 1.0;
  double t = inverted ? 1.0 / size : size;
  double base = 0.0;
  if (t > std::numbers::sqrt2 - 1.0) {
    t = (t - 1.0) / (t + 1.0);
    base = std::numbers::pi / 4;
  }
  double angle = base + t * horner(kAtan, t * t);
  if (inverted) angle = std::numbers::pi / 2 - angle;
  return std::copysign(angle, x);
}

double tanh(double x) {
  const double size = std::fabs(x);
  if (std::isnan(x)) return x;
  if (size > 20.0) return std::copysign(1.0, x);
  if (size < 0x1p-8) {  // the quotient below would cancel
    const double s = x * x;
    return x * (1.0 + s * (-1.0 / 3 + s * (2.0 / 15 + s * (-17.0 / 315))));
  }
  const double e = exp(-2.0 * size);
  return std::copysign((1.0 - e) / (1.0 + e), x);
}

double sigmoid(double x) {
  const double e = exp(-std::fabs(x));
  return x >= 0.0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
}

}  // namespace troupe::runtime::math
