#include "model/backend/cpu/activations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/kernel_call.h"
#include "model/backend/reference/kernels.h"
#include "runtime/base/math.h"
#include "runtime/base/math_series.h"

// This file is compiled once for each kind of vector, as plane_vectors.cpp is.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/backend/cpu/activations.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
// The functions of runtime/base/math.h, step by step, to the same bits.
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

// The logarithm of positive numbers that are neither subnormal nor infinite.
HWY_INLINE DoubleVector logarithm(DoubleVector x) {
  const Doubles tag;
  const hn::RebindToUnsigned<Doubles> words;
  const auto set = [&](double value) { return hn::Set(tag, value); };
  namespace math = runtime::math;
  const auto one = set(1.0);
  const auto bits = hn::BitCast(words, x);
  // As the lowest bits of 2^52 the exponent's are a whole number.
  const auto raised = hn::Or(hn::ShiftRight<52>(bits), hn::BitCast(words, set(0x1p52)));
  auto exponent = hn::Sub(hn::BitCast(tag, raised), set(0x1p52 + 1023.0));
  const auto fraction_bits = hn::And(bits, hn::Set(words, 0xFFFFFFFFFFFFFu));
  auto mantissa = hn::BitCast(tag, hn::Or(fraction_bits, hn::BitCast(words, one)));
  const auto is_large = hn::Gt(mantissa, set(std::numbers::sqrt2));
  mantissa = hn::IfThenElse(is_large, hn::Mul(mantissa, set(0.5)), mantissa);
  exponent = hn::IfThenElse(is_large, hn::Add(exponent, one), exponent);
  const auto s = hn::Div(hn::Sub(mantissa, one), hn::Add(mantissa, one));
  const auto fraction = hn::Mul(hn::Mul(set(2.0), s), horner(math::kAtanh, hn::Mul(s, s)));
  return hn::Add(hn::Mul(exponent, set(math::kLn2High)),
                 hn::Add(hn::Mul(exponent, set(math::kLn2Low)), fraction));
}

using HalfFloats = hn::Rebind<float, Doubles>;

HWY_INLINE DoubleVector load_doubles(const float* from) {
  return hn::PromoteTo(Doubles(), hn::LoadU(HalfFloats(), from));
}

// Whether these functions are those of math.h for all of these; not for NaN.
HWY_INLINE bool within(DoubleVector x, double most) {
  const Doubles tag;
  return hn::AllTrue(tag, hn::Le(hn::Abs(x), hn::Set(tag, most)));
}

// Calls write(i) for whole vectors of elements whose arguments are of a size that vectors know, and
// single(first, end) for the others.
template <class Write, class Single>
HWY_INLINE void over_vectors(const float* arguments, std::int64_t count, double most,
                             const Write& write, const Single& single) {
  std::int64_t i = 0;
  for (; i + kDoubles <= count; i += kDoubles) {
    if (within(load_doubles(arguments + i), most)) {
      write(i);
    } else {
      single(i, i + kDoubles);
    }
  }
  if (i < count) single(i, count);
}

constexpr double kGeluScale = 0.79788456080286536;  // as the reference has them
constexpr double kGeluCube = 0.044715;
constexpr double kMostOfGelu = 20.0;  // its cube is within kMostExponent

HWY_INLINE DoubleVector gelu_tanh(DoubleVector x) {
  const Doubles tag;
  const auto cube = hn::Mul(hn::Mul(hn::Mul(hn::Set(tag, kGeluCube), x), x), x);
  return tanh(hn::Mul(hn::Set(tag, kGeluScale), hn::Add(x, cube)));
}

void activate(const Activation& activation, const float* x, float* y, std::int64_t count) {
  const Doubles tag;
  const auto set = [&](double value) { return hn::Set(tag, value); };
  const auto one = set(1.0), zero = hn::Zero(tag);
  const auto loop = [&](double most, const auto& function) {
    over_vectors(
        x, count, most,
        [&](std::int64_t i) {
          hn::StoreU(hn::DemoteTo(HalfFloats(), function(load_doubles(x + i))), HalfFloats(),
                     y + i);
        },
        [&](std::int64_t i, std::int64_t end) {
          reference::activate(activation, x + i, y + i, end - i);
        });
  };
  switch (activation.kind) {
    case ActivationKind::kSigmoid:
      return loop(kMostExponent, [&](DoubleVector v) { return sigmoid(v); });
    case ActivationKind::kTanh:
      return loop(kMostExponent / 2, [&](DoubleVector v) { return tanh(v); });
    case ActivationKind::kSoftplus:
      return loop(kMostExponent, [&](DoubleVector v) {
        const auto positive = hn::IfThenElse(hn::Lt(v, zero), zero, v);
        return hn::Add(positive, logarithm(hn::Add(one, exponential(hn::Neg(hn::Abs(v))))));
      });
    case ActivationKind::kGelu:
      return loop(kMostOfGelu, [&](DoubleVector v) {
        return hn::Mul(hn::Mul(set(0.5), v), hn::Add(one, gelu_tanh(v)));
      });
    case ActivationKind::kSilu:
      return loop(kMostExponent, [&](DoubleVector v) { return hn::Mul(v, sigmoid(v)); });
    case ActivationKind::kElu:
      return loop(kMostExponent, [&](DoubleVector v) {
        const auto negative = hn::Lt(v, zero);
        if (hn::AllFalse(tag, negative)) return v;
        return hn::IfThenElse(negative, hn::Sub(exponential(v), one), v);
      });
    case ActivationKind::kLinear:
    case ActivationKind::kRelu:
    case ActivationKind::kLeakyRelu:
      return reference::activate(activation, x, y, count);
  }
}

// `known`: y, or x where the result does not tell the slope.
// The derivatives of kRelu and kLeakyRelu, step by step as the reference has them. Handles whole
// vectors and returns where the rest begins.
std::int64_t weaken(const Activation& activation, const float* y, const float* dy, float* dx,
                    std::int64_t count) {
  const hn::CappedTag<float, 16> floats;
  constexpr auto kFloats = static_cast<std::int64_t>(hn::MaxLanes(hn::CappedTag<float, 16>()));
  const auto zero = hn::Zero(floats);
  const auto slope = hn::Set(floats, static_cast<float>(activation.slope));
  const bool leaks = activation.kind == ActivationKind::kLeakyRelu;
  std::int64_t i = 0;
  for (; i + kFloats <= count; i += kFloats) {
    const auto derivative = hn::LoadU(floats, dy + i);
    const auto is_low = hn::Le(hn::LoadU(floats, y + i), zero);
    auto value = hn::IfThenElse(is_low, zero, derivative);
    if (leaks) {
      value = hn::Add(value, hn::Mul(slope, hn::IfThenElse(is_low, derivative, zero)));
    }
    hn::StoreU(value, floats, dx + i);
  }
  return i;
}

void activate_backward(const Activation& activation, const float* known, const float* dy, float* dx,
                       std::int64_t count) {
  const Doubles tag;
  const auto set = [&](double value) { return hn::Set(tag, value); };
  const auto one = set(1.0);
  const auto single = [&](std::int64_t i, std::int64_t end) {
    const std::array<void*, 3> places{const_cast<float*>(known + i), const_cast<float*>(dy + i),
                                      dx + i};
    reference::run<float>(ActivationBackward{end - i, activation}, KernelCall{places, {}});
  };
  const auto loop = [&](double most, const auto& slope) {
    over_vectors(
        known, count, most,
        [&](std::int64_t i) {
          const auto value = hn::Mul(load_doubles(dy + i), slope(load_doubles(known + i)));
          hn::StoreU(hn::DemoteTo(HalfFloats(), value), HalfFloats(), dx + i);
        },
        single);
  };
  switch (activation.kind) {
    case ActivationKind::kSoftplus:
      return loop(kMostExponent,
                  [&](DoubleVector v) { return hn::Sub(one, exponential(hn::Neg(v))); });
    case ActivationKind::kGelu:
      return loop(kMostOfGelu, [&](DoubleVector v) {
        const auto t = gelu_tanh(v);
        const auto square = hn::Mul(hn::Mul(set(3.0 * kGeluCube), v), v);
        const auto inner = hn::Mul(set(kGeluScale), hn::Add(one, square));
        const auto bend = hn::Mul(hn::Mul(set(0.5), v), hn::Sub(one, hn::Mul(t, t)));
        return hn::Add(hn::Mul(set(0.5), hn::Add(one, t)), hn::Mul(bend, inner));
      });
    case ActivationKind::kSilu:
      return loop(kMostExponent, [&](DoubleVector v) {
        const auto s = sigmoid(v);
        return hn::Mul(s, hn::Add(one, hn::Mul(v, hn::Sub(one, s))));
      });
    case ActivationKind::kElu: {
      const HalfFloats floats;
      const std::int64_t whole = count / kDoubles * kDoubles;
      for (std::int64_t i = 0; i < whole; i += kDoubles) {
        const auto y = hn::LoadU(floats, known + i), derivative = hn::LoadU(floats, dy + i);
        const auto bent = hn::Mul(derivative, hn::Add(y, hn::Set(floats, 1.0F)));
        const auto negative = hn::Lt(y, hn::Zero(floats));
        hn::StoreU(hn::IfThenElse(negative, bent, derivative), floats, dx + i);
      }
      return single(whole, count);
    }
    case ActivationKind::kRelu:
    case ActivationKind::kLeakyRelu: {
      const std::int64_t done = weaken(activation, known, dy, dx, count);
      return single(done, count);
    }
    default:
      return single(0, count);
  }
}

// The logarithm of a float above zero is within +-104, so arguments keep within kMostExponent.
constexpr double kMostPower = 6.7;
constexpr double kMostFloat = std::numeric_limits<float>::max();
constexpr double kNever = -1.0;  // a size that no argument has

void raise(double exponent, const float* x, float* y, std::int64_t count) {
  const Doubles tag;
  const auto at_zero = hn::Set(tag, runtime::math::pow(0.0, exponent));
  const auto p = hn::Set(tag, exponent);
  over_vectors(
      x, count, std::abs(exponent) <= kMostPower ? kMostFloat : kNever,
      [&](std::int64_t i) {
        const auto v = load_doubles(x + i);
        const auto value = exponential(hn::Mul(p, logarithm(v)));
        const auto chosen = hn::IfThenElse(hn::Le(v, hn::Zero(tag)), at_zero, value);
        hn::StoreU(hn::DemoteTo(HalfFloats(), chosen), HalfFloats(), y + i);
      },
      [&](std::int64_t i, std::int64_t end) {
        const std::array<void*, 2> places{const_cast<float*>(x + i), y + i};
        reference::run<float>(PowerForward{end - i, exponent}, KernelCall{places, {}});
      });
}

void raise_backward(double exponent, const float* x, const float* dy, float* dx,
                    std::int64_t count) {
  const Doubles tag;
  const HalfFloats floats;
  const auto p = hn::Set(tag, exponent), less = hn::Set(tag, exponent - 1.0);
  over_vectors(
      x, count, std::abs(exponent - 1.0) <= kMostPower ? kMostFloat : kNever,
      [&](std::int64_t i) {
        const auto v = load_doubles(x + i);
        const auto slope = hn::Mul(p, exponential(hn::Mul(less, logarithm(v))));
        const auto value = hn::Mul(hn::DemoteTo(floats, slope), hn::LoadU(floats, dy + i));
        const auto is_low = hn::Le(hn::LoadU(floats, x + i), hn::Zero(floats));
        hn::StoreU(hn::IfThenElse(is_low, hn::Zero(floats), value), floats, dx + i);
      },
      [&](std::int64_t i, std::int64_t end) {
        const std::array<void*, 3> places{const_cast<float*>(x + i), const_cast<float*>(dy + i),
                                          dx + i};
        reference::run<float>(PowerBackward{end - i, exponent}, KernelCall{places, {}});
      });
}

void raise_e(double* values, std::int64_t count) {
  const Doubles tag;
  std::int64_t i = 0;
  for (; i + kDoubles <= count; i += kDoubles) {
    const auto x = hn::LoadU(tag, values + i);
    if (within(x, kMostExponent)) {
      hn::StoreU(exponential(x), tag, values + i);
    } else {
      for (std::int64_t k = i; k < i + kDoubles; ++k) values[k] = runtime::math::exp(values[k]);
    }
  }
  for (; i < count; ++i) values[i] = runtime::math::exp(values[i]);
}

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(activate);
HWY_EXPORT(activate_backward);
HWY_EXPORT(raise);
HWY_EXPORT(raise_backward);
HWY_EXPORT(raise_e);

namespace {

constexpr std::int64_t kElementsAtOnce = 1 << 15;  // by one thread

// An activation or a power, forward or backward.
template <class Op>
class ElementKernel final : public Kernel {
 public:
  explicit ElementKernel(const Op& operation) : operation_(operation) {}

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    run_together(operands, random, Crew(scratch));
  }
  void run_together(std::span<void* const> operands, const runtime::RandomPosition& random,
                    const Crew& crew) const override {
    const std::int64_t elements = operation_.elements;
    crew.run((elements + kElementsAtOnce - 1) / kElementsAtOnce, [&](std::int64_t i, int) {
      run_elements(operands, random,
                   {i * kElementsAtOnce, std::min((i + 1) * kElementsAtOnce, elements)});
    });
  }
  bool runs_elements() const override { return true; }
  void run_elements(std::span<void* const> operands, const runtime::RandomPosition& random,
                    const ElementRange& range) const override {
    const KernelCall call{operands, random};
    const std::int64_t first = range.begin, count = range.end - range.begin;
    const auto* x = call.operand<const float>(0) + first;
    if constexpr (std::is_same_v<Op, ActivationForward>) {
      HWY_DYNAMIC_DISPATCH(activate)
      (operation_.activation, x, call.operand<float>(1) + first, count);
    } else if constexpr (std::is_same_v<Op, PowerForward>) {
      HWY_DYNAMIC_DISPATCH(raise)(operation_.exponent, x, call.operand<float>(1) + first, count);
    } else if constexpr (std::is_same_v<Op, ActivationBackward>) {
      HWY_DYNAMIC_DISPATCH(activate_backward)
      (operation_.activation, x, call.operand<const float>(1) + first,
       call.operand<float>(2) + first, count);
    } else {
      HWY_DYNAMIC_DISPATCH(raise_backward)
      (operation_.exponent, x, call.operand<const float>(1) + first, call.operand<float>(2) + first,
       count);
    }
  }

 private:
  Op operation_;
};

// Several short rows at once fill vectors.
class SoftmaxKernel final : public Kernel {
 public:
  explicit SoftmaxKernel(const SoftmaxForward& softmax)
      : softmax_(softmax), rows_at_once_(std::max<std::int64_t>(512 / softmax.channels, 1)) {}

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(rows_at_once_ * softmax_.channels) * sizeof(double);
  }
  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const std::int64_t channels = softmax_.channels;
    const auto* x = call.operand<const float>(0);
    auto* y = call.operand<float>(1);
    auto* powers = reinterpret_cast<double*>(scratch);
    for (std::int64_t row = 0; row < softmax_.rows; row += rows_at_once_) {
      const std::int64_t rows = std::min(rows_at_once_, softmax_.rows - row);
      const std::int64_t first = row * channels;
      for (std::int64_t r = 0; r < rows; ++r) {
        const float* of_row = x + first + r * channels;
        const double largest = static_cast<double>(reference::largest_of(of_row, channels));
        for (std::int64_t c = 0; c < channels; ++c) {
          powers[r * channels + c] = static_cast<double>(of_row[c]) - largest;
        }
      }
      exponentials(powers, rows * channels);
      for (std::int64_t r = 0; r < rows; ++r) {
        const double* of_row = powers + r * channels;
        double sum = 0.0;
        for (std::int64_t c = 0; c < channels; ++c) sum += of_row[c];
        for (std::int64_t c = 0; c < channels; ++c) {
          y[first + r * channels + c] = static_cast<float>(of_row[c] / sum);
        }
      }
    }
  }

 private:
  const SoftmaxForward softmax_;
  const std::int64_t rows_at_once_;
};

// Hosts without the vectors' instructions use the reference.
template <class Ours, class Op>
std::unique_ptr<Kernel> choose(const Op& operation) {
  if (plane_vectors_supported()) return std::make_unique<Ours>(operation);
  return reference::make_kernel<float>(operation);
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const ActivationForward& activation) {
  return choose<ElementKernel<ActivationForward>>(activation);
}

std::unique_ptr<Kernel> make_kernel(const ActivationBackward& activation) {
  return choose<ElementKernel<ActivationBackward>>(activation);
}

std::unique_ptr<Kernel> make_kernel(const PowerForward& power) {
  return choose<ElementKernel<PowerForward>>(power);
}

std::unique_ptr<Kernel> make_kernel(const PowerBackward& power) {
  return choose<ElementKernel<PowerBackward>>(power);
}

std::unique_ptr<Kernel> make_kernel(const SoftmaxForward& softmax) {
  return choose<SoftmaxKernel>(softmax);
}

void exponentials(double* values, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(raise_e)(values, count);
}

}  // namespace troupe::model::cpu

#endif
