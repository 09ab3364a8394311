#pragma once

// The constants of math.h's functions, for loops that compute several of their results at once,
// step by step as math.cpp does, to the same bits.

#include <array>
#include <cstddef>

namespace troupe::runtime::math {

// ln 2 and pi / 2 in parts whose leading ones have trailing zero bits, so that their products with
// small integers are exact (Cody and Waite).
inline constexpr double kLn2High = 0x1.62e42fee00000p-1;
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
inline constexpr double kHalfPi1 = 0x1.921fb54400000p+0;
inline constexpr double kHalfPi2 = 0x1.0b4611a600000p-34;
inline constexpr double kHalfPi3 = 0x1.3198a2e037073p-69;

// sign^k / (first + step k)! and friends, worked out by the compiler.
template <std::size_t N>
constexpr std::array<double, N> inverse_factorials(int first, int step, double sign) {
  std::array<double, N> values{};
  double factorial = 1.0;
  int reached = 1;
  double s = 1.0;
  for (std::size_t k = 0; k < N; ++k) {
    const int n = first + step * static_cast<int>(k);
    for (; reached <= n; ++reached) factorial *= reached;
    values[k] = s / factorial;
    s *= sign;
  }
  return values;
}

// sign^k / (2 k + 1).
template <std::size_t N>
constexpr std::array<double, N> odd_reciprocals(double sign) {
  std::array<double, N> values{};
  double s = 1.0;
  for (std::size_t k = 0; k < N; ++k) {
    values[k] = s / static_cast<double>(2 * k + 1);
    s *= sign;
  }
  return values;
}

// Taylor series, cut where the next term is under 1e-17 of the sum on the reduced range.
inline constexpr auto kExp = inverse_factorials<14>(0, 1, 1.0);  // |x| <= ln 2 / 2
inline constexpr auto kSin = inverse_factorials<9>(1, 2, -1.0);  // |x| <= pi / 4
inline constexpr auto kCos = inverse_factorials<9>(0, 2, -1.0);  // |x| <= pi / 4
inline constexpr auto kAtanh = odd_reciprocals<12>(1.0);         // |x| <= 3 - 2 sqrt 2
inline constexpr auto kAtan = odd_reciprocals<21>(-1.0);         // |x| <= sqrt 2 - 1

}  // namespace troupe::runtime::math
