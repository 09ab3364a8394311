#include <algorithm>
#include <cmath>

#include "model/backend/reference/kernels.h"
#include "runtime/base/math.h"

namespace troupe::model::reference {
namespace {

constexpr double kGeluScale = 0.79788456080286536;  // sqrt(2 / pi)
constexpr double kGeluCube = 0.044715;

double gelu_tanh(double x) { return runtime::math::tanh(kGeluScale * (x + kGeluCube * x * x * x)); }

// Calls use(f) with the function x -> y of the kind, so that each kind has a loop of its own.
// The comparisons are such that NaN takes the branch that keeps it.
template <class T, class Use>
void with_forward(const Activation& activation, const Use& use) {
  const T slope = static_cast<T>(activation.slope);
  switch (activation.kind) {
    case ActivationKind::kLinear:
      return use([](T x) { return x; });
    case ActivationKind::kRelu:
      return use([](T x) { return x < T{0} ? T{0} : x; });
    case ActivationKind::kLeakyRelu:  // two choices against 0 vectorise, one of products does not
      return use([=](T x) {
        const T positive = x < T{0} ? T{0} : x, negative = x < T{0} ? x : T{0};
        return positive + slope * negative;
      });
    case ActivationKind::kSigmoid:
      return use([](T x) { return static_cast<T>(runtime::math::sigmoid(x)); });
    case ActivationKind::kTanh:
      return use([](T x) { return static_cast<T>(runtime::math::tanh(x)); });
    case ActivationKind::kSoftplus:
      return use([](T x) {
        const double value = x, positive = value < 0.0 ? 0.0 : value;
        return static_cast<T>(positive +
                              runtime::math::log(1.0 + runtime::math::exp(-std::fabs(value))));
      });
    case ActivationKind::kGelu:
      return use([](T x) { return static_cast<T>(0.5 * x * (1.0 + gelu_tanh(x))); });
    case ActivationKind::kSilu:
      return use([](T x) { return static_cast<T>(x * runtime::math::sigmoid(x)); });
    case ActivationKind::kElu:
      return use([](T x) { return x < T{0} ? static_cast<T>(runtime::math::exp(x) - 1.0) : x; });
  }
}

// The same with y, dy -> dx, or x, dy -> dx for kinds that need it.
template <class T, class Use>
void with_backward(const Activation& activation, const Use& use) {
  const T slope = static_cast<T>(activation.slope);
  switch (activation.kind) {
    case ActivationKind::kLinear:
      return use([](T, T dy) { return dy; });
    case ActivationKind::kRelu:
      return use([](T y, T dy) { return y <= T{0} ? T{0} : dy; });
    case ActivationKind::kLeakyRelu:
      return use([=](T y, T dy) {
        const T passed = y <= T{0} ? T{0} : dy, weakened = y <= T{0} ? dy : T{0};
        return passed + slope * weakened;
      });
    case ActivationKind::kSigmoid:
      return use([](T y, T dy) { return dy * (y * (T{1} - y)); });
    case ActivationKind::kTanh:
      return use([](T y, T dy) { return dy * (T{1} - y * y); });
    case ActivationKind::kSoftplus:  // the slope is the sigmoid
      return use([](T y, T dy) {
        return static_cast<T>(dy * (1.0 - runtime::math::exp(-static_cast<double>(y))));
      });
    case ActivationKind::kGelu:
      return use([](T x, T dy) {
        const double value = x, t = gelu_tanh(value);
        const double inner = kGeluScale * (1.0 + 3.0 * kGeluCube * value * value);
        return static_cast<T>(dy * (0.5 * (1.0 + t) + 0.5 * value * (1.0 - t * t) * inner));
      });
    case ActivationKind::kSilu:
      return use([](T x, T dy) {
        const double value = x, s = runtime::math::sigmoid(value);
        return static_cast<T>(dy * (s * (1.0 + value * (1.0 - s))));
      });
    case ActivationKind::kElu:
      return use([](T y, T dy) { return y < T{0} ? dy * (y + T{1}) : dy; });
  }
}

}  // namespace

template <class T>
void activate(const Activation& activation, const T* x, T* y, std::int64_t elements) {
  with_forward<T>(activation, [=](const auto& function) {
    for (std::int64_t i = 0; i < elements; ++i) y[i] = function(x[i]);
  });
}

template <class T>
void run(const ActivationForward& activation, const KernelCall& call) {
  activate(activation.activation, call.operand<const T>(0), call.operand<T>(1),
           activation.elements);
}

template <class T>
void run(const ActivationBackward& activation, const KernelCall& call) {
  const auto* y = call.operand<const T>(0);
  const auto* dy = call.operand<const T>(1);
  auto* dx = call.operand<T>(2);
  with_backward<T>(activation.activation, [=, &activation](const auto& function) {
    for (std::int64_t i = 0; i < activation.elements; ++i) dx[i] = function(y[i], dy[i]);
  });
}

TROUPE_INSTANTIATE_RUN(ActivationForward);
TROUPE_INSTANTIATE_RUN(ActivationBackward);
template void activate(const Activation&, const float*, float*, std::int64_t);
template void activate(const Activation&, const double*, double*, std::int64_t);

template <class T>
void run(const PowerForward& power, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  auto* y = call.operand<T>(1);
  const T at_zero = static_cast<T>(runtime::math::pow(0.0, power.exponent));
  for (std::int64_t i = 0; i < power.elements; ++i) {
    y[i] = x[i] <= T{0} ? at_zero : static_cast<T>(runtime::math::pow(x[i], power.exponent));
  }
}

template <class T>
void run(const PowerBackward& power, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  const auto* dy = call.operand<const T>(1);
  auto* dx = call.operand<T>(2);
  for (std::int64_t i = 0; i < power.elements; ++i) {
    const auto slope = [&] {
      return power.exponent * runtime::math::pow(x[i], power.exponent - 1.0);
    };
    dx[i] = x[i] <= T{0} ? T{0} : static_cast<T>(slope()) * dy[i];
  }
}

TROUPE_INSTANTIATE_RUN(PowerForward);
TROUPE_INSTANTIATE_RUN(PowerBackward);

template <class T>
void drop(const T* from, T* to, std::int64_t first, std::int64_t elements, double rate,
          const runtime::RandomPosition& position) {
  const T scale = static_cast<T>(1.0 / (1.0 - rate));
  for (std::int64_t i = first; i < elements;) {
    const auto words = runtime::random_block(position, static_cast<std::uint32_t>(i / 4));
    for (const std::int64_t end = std::min(i / 4 * 4 + 4, elements); i < end; ++i) {
      const bool kept = runtime::uniform(words[static_cast<std::size_t>(i % 4)]) >= rate;
      to[i] = kept ? from[i] * scale : T{0};
    }
  }
}

template <class T>
void run(const DropoutForward& dropout, const KernelCall& call) {
  runtime::RandomPosition position = call.random;
  position.stream = dropout.stream;
  drop(call.operand<const T>(0), call.operand<T>(1), 0, dropout.elements, dropout.rate, position);
}

template <class T>
void run(const DropoutBackward& dropout, const KernelCall& call) {
  run<T>(DropoutForward{dropout.elements, dropout.rate, dropout.stream}, call);
}

TROUPE_INSTANTIATE_RUN(DropoutForward);
TROUPE_INSTANTIATE_RUN(DropoutBackward);
template void drop(const float*, float*, std::int64_t, std::int64_t, double,
                   const runtime::RandomPosition&);
template void drop(const double*, double*, std::int64_t, std::int64_t, double,
                   const runtime::RandomPosition&);

template <class T>
void run(const Accumulate& accumulate, const KernelCall& call) {
  const T* __restrict from = call.operand<const T>(0);
  T* __restrict into = call.operand<T>(1);
  for (std::int64_t i = 0; i < accumulate.elements; ++i) into[i] += from[i];
}

TROUPE_INSTANTIATE_RUN(Accumulate);

template <class T>
void run(const Product& product, const KernelCall& call) {
  const auto* a = call.operand<const T>(0);
  const auto* b = call.operand<const T>(1);
  auto* y = call.operand<T>(2);
  for (std::int64_t i = 0; i < product.elements; ++i) y[i] = a[i] * b[i];
}

TROUPE_INSTANTIATE_RUN(Product);

template <class T>
void run(const ZeroFill& fill, const KernelCall& call) {
  std::fill_n(call.operand<T>(0), fill.elements, T{0});
}

TROUPE_INSTANTIATE_RUN(ZeroFill);

}  // namespace troupe::model::reference
