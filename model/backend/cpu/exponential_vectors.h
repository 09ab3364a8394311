// Vectors of doubles in the functions of runtime/base/math.h, step by step, to the same bits: no
// step is fused. For sources that are compiled once for each kind of vector, so no #pragma once.

#if defined(TROUPE_EXPONENTIAL_VECTORS) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_EXPONENTIAL_VECTORS
#undef TROUPE_EXPONENTIAL_VECTORS
#else
#define TROUPE_EXPONENTIAL_VECTORS
#endif

#include <hwy/highway.h>

#include <numbers>

#include "runtime/base/math_series.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Doubles = hn::CappedTag<double, 8>;
using DoubleVector = hn::Vec<Doubles>;
constexpr std::int64_t kDoubles = hn::MaxLanes(Doubles());

// Arguments of exponential() lie within +-kMostExponent, where results are normal.
constexpr double kMostExponent = 700.0;

template <std::size_t N>
HWY_INLINE DoubleVector horner(const std::array<double, N>& coefficients, DoubleVector x) {
  const Doubles tag;
  DoubleVector sum = hn::Set(tag, coefficients[N - 1]);
  for (std::size_t i = N - 1; i-- > 0;) {
    sum = hn::Add(hn::Mul(sum, x), hn::Set(tag, coefficients[i]));
  }
  return sum;
}

HWY_INLINE DoubleVector exponential(DoubleVector x) {
  const Doubles tag;
  const auto set = [&](double value) { return hn::Set(tag, value); };
  namespace math = runtime::math;
  const DoubleVector n = hn::Round(hn::Mul(x, set(std::numbers::log2e)));
  const DoubleVector rest =
      hn::Sub(hn::Sub(x, hn::Mul(n, set(math::kLn2High))), hn::Mul(n, set(math::kLn2Low)));
  // The low bits of n + 1023 + 1.5 2^52 are those of the whole number n + 1023.
  const auto bits =
      hn::BitCast(hn::RebindToUnsigned<Doubles>(), hn::Add(n, set(0x1.8p52 + 1023.0)));
  return hn::Mul(horner(math::kExp, rest), hn::BitCast(tag, hn::ShiftLeft<52>(bits)));
}

HWY_INLINE DoubleVector sigmoid(DoubleVector x) {
  const Doubles tag;
  const auto one = hn::Set(tag, 1.0);
  const auto e = exponential(hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Ge(x, hn::Zero(tag)), one, e), hn::Add(one, e));
}

HWY_INLINE DoubleVector tanh(DoubleVector x) {
  const Doubles tag;
  const auto set = [&](double value) { return hn::Set(tag, value); };
  const auto one = set(1.0), size = hn::Abs(x);
  const auto e = exponential(hn::Mul(set(-2.0), size));
  auto value = hn::Div(hn::Sub(one, e), hn::Add(one, e));
  value = hn::IfThenElse(hn::Gt(size, set(20.0)), one, value);
  const auto s = hn::Mul(x, x);
  const auto small = hn::Mul(
      x, hn::Add(one, hn::Mul(s, hn::Add(set(-1.0 / 3),
                                         hn::Mul(s, hn::Add(set(2.0 / 15),
                                                            hn::Mul(s, set(-17.0 / 315))))))));
  return hn::IfThenElse(hn::Lt(size, set(0x1p-8)), small, hn::CopySign(value, x));
}

// The logarithm of numbers from 1 to 2.
HWY_INLINE DoubleVector logarithm(DoubleVector x) {
  const Doubles tag;
  const auto set = [&](double value) { return hn::Set(tag, value); };
  namespace math = runtime::math;
  const auto one = set(1.0), half = set(0.5);
  const auto is_two = hn::Ge(x, set(2.0));
  auto mantissa = hn::IfThenElse(is_two, hn::Mul(x, half), x);
  auto exponent = hn::IfThenElseZero(is_two, one);
  const auto is_large = hn::Gt(mantissa, set(std::numbers::sqrt2));
  mantissa = hn::IfThenElse(is_large, hn::Mul(mantissa, half), mantissa);
  exponent = hn::IfThenElse(is_large, hn::Add(exponent, one), exponent);
  const auto s = hn::Div(hn::Sub(mantissa, one), hn::Add(mantissa, one));
  const auto fraction = hn::Mul(hn::Mul(set(2.0), s), horner(math::kAtanh, hn::Mul(s, s)));
  return hn::Add(hn::Mul(exponent, set(math::kLn2High)),
                 hn::Add(hn::Mul(exponent, set(math::kLn2Low)), fraction));
}

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
