#include "model/loss.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/base/math.h"

namespace troupe::model {
namespace {

constexpr double kClip = 1e-7;

struct Point {
  double value;
  double slope;  // d value / d output
};

double sign(double x) { return x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : 0.0); }

Point binary_crossentropy(double output, double target) {
  // Written so that a NaN passes through.
  const double p = output < kClip ? kClip : (output > 1.0 - kClip ? 1.0 - kClip : output);
  const double value =
      -target * runtime::math::log(p) - (1.0 - target) * runtime::math::log(1.0 - p);
  const bool clipped = output < kClip || output > 1.0 - kClip;
  return {value, clipped ? 0.0 : (p - target) / (p * (1.0 - p))};
}

Point absolute_error(double output, double target) {
  return {std::fabs(target - output), sign(output - target)};
}

Point absolute_percentage_error(double output, double target) {
  const double scale = 100.0 / std::max(std::fabs(target), 1e-7);
  return {scale * std::fabs(target - output), scale * sign(output - target)};
}

Point evaluate(LossKind kind, double output, double target) {
  switch (kind) {
    case LossKind::kBinaryCrossentropy:
      return binary_crossentropy(output, target);
    case LossKind::kMeanAbsoluteError:
      return absolute_error(output, target);
    case LossKind::kMeanAbsolutePercentageError:
      return absolute_percentage_error(output, target);
  }
  CHECK(false, "unknown loss");
}

}  // namespace

template <class T>
double evaluate_loss(LossKind kind, double weight, std::span<const T> outputs,
                     std::span<const double> targets, T* gradient) {
  CHECK(outputs.size() == targets.size() && !outputs.empty());
  const double count = static_cast<double>(outputs.size());
  double sum = 0.0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Point point = evaluate(kind, static_cast<double>(outputs[i]), targets[i]);
    sum += point.value;
    if (gradient != nullptr) gradient[i] = static_cast<T>(weight * point.slope / count);
  }
  return sum / count;
}

template double evaluate_loss(LossKind, double, std::span<const float>, std::span<const double>,
                              float*);
template double evaluate_loss(LossKind, double, std::span<const double>, std::span<const double>,
                              double*);

}  // namespace troupe::model
