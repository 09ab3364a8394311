#include <algorithm>
#include <cmath>
#include <limits>

#include "model/backend/reference/kernels.h"
#include "runtime/base/math.h"

namespace troupe::model::reference {
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

Point squared_error(double output, double target) {
  const double difference = output - target;
  return {difference * difference, 2.0 * difference};
}

Point huber(double output, double target) {
  const double difference = output - target, size = std::fabs(difference);
  if (size > 1.0) return {size - 0.5, sign(difference)};
  return {0.5 * difference * difference, difference};
}

Point logistic_crossentropy(double output, double target) {
  const double positive = output < 0.0 ? 0.0 : output;
  const double rest = runtime::math::log(1.0 + runtime::math::exp(-std::fabs(output)));
  return {positive - output * target + rest, runtime::math::sigmoid(output) - target};
}

Point hinge(double output, double target) {
  const double sign = 2.0 * target - 1.0, margin = 1.0 - sign * output;
  if (margin <= 0.0) return {0.0, 0.0};
  return {margin, -sign};
}

Point evaluate(LossKind kind, double output, double target) {
  switch (kind) {
    case LossKind::kBinaryCrossentropy:
      return binary_crossentropy(output, target);
    case LossKind::kMeanAbsoluteError:
      return absolute_error(output, target);
    case LossKind::kMeanAbsolutePercentageError:
      return absolute_percentage_error(output, target);
    case LossKind::kMeanSquaredError:
      return squared_error(output, target);
    case LossKind::kHuber:
      return huber(output, target);
    case LossKind::kLogisticCrossentropy:
      return logistic_crossentropy(output, target);
    case LossKind::kHinge:
      return hinge(output, target);
    case LossKind::kWasserstein:
      return {(1.0 - 2.0 * target) * output, 1.0 - 2.0 * target};
    case LossKind::kGradientPenalty:
    case LossKind::kClassCrossentropy:  // ClassCrossentropy's
      break;
  }
  CHECK(false, "unknown loss");
}

}  // namespace

template <class T>
void run(const MeanLoss& loss, const KernelCall& call) {
  const auto* outputs = call.operand<const T>(0);
  const auto* targets = call.operand<const T>(1);
  auto* gradient = call.operand<T>(3);
  const double count = static_cast<double>(loss.elements);
  double sum = 0.0;
  for (std::int64_t i = 0; i < loss.elements; ++i) {
    const double target = std::max(loss.least_target, static_cast<double>(targets[i]));
    const Point point = evaluate(loss.kind, static_cast<double>(outputs[i]), target);
    sum += point.value;
    gradient[i] = static_cast<T>(loss.weight * point.slope / count);
  }
  *call.operand<T>(2) = static_cast<T>(sum / count);
}

template <class T>
void run(const ClassCrossentropy& loss, const KernelCall& call) {
  const auto* outputs = call.operand<const T>(0);
  const auto* targets = call.operand<const T>(1);
  auto* gradient = call.operand<T>(3);
  const double count = static_cast<double>(loss.batch);
  double sum = 0.0;
  for (std::int64_t b = 0; b < loss.batch; ++b) {
    const double target = static_cast<double>(targets[b]);
    const double most = static_cast<double>(*std::max_element(outputs, outputs + loss.classes));
    double all = 0.0;
    double own = 0.0;
    bool is_class = false;
    for (std::int64_t k = 0; k < loss.classes; ++k) {
      const double output = static_cast<double>(outputs[k]) - most;
      all += runtime::math::exp(output);
      if (target == static_cast<double>(k)) {
        own = output;
        is_class = true;
      }
    }
    const double lost = is_class ? 0.0 : std::numeric_limits<double>::quiet_NaN();
    sum += runtime::math::log(all) - own + lost;
    for (std::int64_t k = 0; k < loss.classes; ++k) {
      const double output = static_cast<double>(outputs[k]) - most;
      const double expected = target == static_cast<double>(k) ? 1.0 : lost;
      const double slope = runtime::math::exp(output) / all - expected;
      gradient[k] = static_cast<T>(loss.weight * slope / count);
    }
    outputs += loss.classes;
    gradient += loss.classes;
  }
  *call.operand<T>(2) = static_cast<T>(sum / count);
}

template <class T>
void run(const CountEmpty& images, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  std::int64_t empty = 0;
  for (std::int64_t b = 0; b < images.batch; ++b, x += images.cells) {
    empty += std::all_of(x, x + images.cells, [](T cell) { return cell == T{0}; }) ? 1 : 0;
  }
  *call.operand<T>(1) = static_cast<T>(empty);
}

template <class T>
void run(const MixEvents& mix, const KernelCall& call) {
  const auto *a = call.operand<const T>(0), *b = call.operand<const T>(1);
  const auto* u = call.operand<const T>(2);
  auto* y = call.operand<T>(3);
  for (std::int64_t i = 0; i < mix.batch * mix.cells; ++i) {
    const double from = static_cast<double>(a[i]), to = static_cast<double>(b[i]);
    y[i] = static_cast<T>(from + static_cast<double>(u[i / mix.cells]) * (to - from));
  }
}

template <class T>
double norm(const T* values, std::int64_t count) {
  double squares = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return std::sqrt(squares);
}

template <class T>
void run(const SlopeProbes& probes, const KernelCall& call) {
  const auto *x = call.operand<const T>(0), *dx = call.operand<const T>(1);
  auto* slope = call.operand<T>(2);
  auto *above = call.operand<T>(3), *below = call.operand<T>(4), *factors = call.operand<T>(5);
  for (std::int64_t event = 0; event < probes.batch; ++event) {
    const std::int64_t first = event * probes.cells;
    const double length = norm(dx + first, probes.cells), size = norm(x + first, probes.cells);
    const double step = (size < 1.0 ? 1.0 : size) / 1024.0;
    const double along = length > 0.0 ? step / length : 0.0;
    for (std::int64_t i = first; i < first + probes.cells; ++i) {
      const double moved = along * static_cast<double>(dx[i]);
      above[i] = static_cast<T>(static_cast<double>(x[i]) + moved);
      below[i] = static_cast<T>(static_cast<double>(x[i]) - moved);
    }
    slope[event] = static_cast<T>(length);
    factors[event] = static_cast<T>(0.5 / step);
    factors[probes.batch + event] = static_cast<T>(-0.5 / step);
  }
}

TROUPE_INSTANTIATE_RUN(MeanLoss);
TROUPE_INSTANTIATE_RUN(ClassCrossentropy);
TROUPE_INSTANTIATE_RUN(CountEmpty);
TROUPE_INSTANTIATE_RUN(MixEvents);
TROUPE_INSTANTIATE_RUN(SlopeProbes);

}  // namespace troupe::model::reference
