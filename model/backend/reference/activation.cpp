#include "model/backend/reference/activation.h"

#include "model/backend/reference/instantiate.h"
#include "runtime/base/math.h"

namespace troupe::model::reference {
namespace {

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
  }
}

// The same with y, dy -> dx.
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

}  // namespace troupe::model::reference
