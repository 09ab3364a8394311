#include "model/backend/reference/power.h"

#include "model/backend/reference/instantiate.h"
#include "runtime/base/math.h"

namespace troupe::model::reference {

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

}  // namespace troupe::model::reference
