#include "model/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/base/math.h"

namespace troupe::model {
namespace {

std::uint64_t iterations_of(const TrainingSpan& span, const TrainingTime& time) {
  return span.count * (span.epochs ? time.iterations_per_epoch : 1);
}

// The part that an iteration belongs to. Behind its end the last part has done what it does.
struct PartInForce {
  const LearningRatePart& part;
  std::uint64_t done = 0;    // iterations of it, this one included
  std::uint64_t length = 0;  // 0: to the end
  bool is_over() const { return length > 0 && done > length; }
  bool ends() const { return done == length; }
};

PartInForce part_in_force(const LearningRateOptions& options, const TrainingTime& time) {
  std::uint64_t done = time.iteration + 1;
  if (options.parts.empty()) return {options, done, iterations_of(options.length, time)};
  for (const LearningRatePart& part : options.parts) {
    const std::uint64_t length = iterations_of(part.length, time);
    if (length == 0 || done <= length || &part == &options.parts.back()) {
      return {part, done, length};
    }
    done -= length;
  }
  return {options, done, 0};  // not reached: the last part returns
}

double full_rate(const LearningRateOptions& options, const TrainingTime& time) {
  if (options.scaled == RateScaling::kNone) return options.rate;
  const double times = static_cast<double>(time.events) /
                       static_cast<double>(std::max<std::uint64_t>(options.per_events, 1));
  return options.rate * (options.scaled == RateScaling::kLinear ? times : std::sqrt(times));
}

}  // namespace

double learning_rate(const LearningRateOptions& options, const LearningRateState& state,
                     const TrainingTime& time) {
  const PartInForce now = part_in_force(options, time);
  const double full = full_rate(options, time);
  const double rate = full * state.scale;
  const auto done = static_cast<double>(now.done), length = static_cast<double>(now.length);
  switch (now.part.kind) {
    case LearningRateKind::kWarmup:
      return now.done >= now.length ? rate : rate * done / length;
    case LearningRateKind::kPlateau:
      // A floor above the rate itself never raises it. The state of a part has the floor in it, for
      // the parts behind it.
      return options.parts.empty() ? std::max(rate, std::min(now.part.min_rate, full)) : rate;
    case LearningRateKind::kCosine: {
      // Behind its end the state has the factor.
      if (now.is_over() || now.length == 0) return rate;
      const double cosine = runtime::math::cos(std::numbers::pi * (done - 1.0) / length);
      return rate * (now.part.to + (1.0 - now.part.to) * 0.5 * (1.0 + cosine));
    }
    case LearningRateKind::kConstant:
    case LearningRateKind::kExponential:
    case LearningRateKind::kSteps:
      break;
  }
  return rate;
}

LearningRateState after_iteration(const LearningRateOptions& options, LearningRateState state,
                                  const TrainingTime& time) {
  const PartInForce now = part_in_force(options, time);
  if (now.is_over()) return state;
  const LearningRatePart& part = now.part;
  if (part.kind == LearningRateKind::kExponential) {
    const std::uint64_t every = iterations_of(part.every, time);
    if (every > 0 && now.done % every == 0) state.scale *= part.decay;
  } else if (part.kind == LearningRateKind::kSteps) {
    for (const TrainingSpan& at : part.at) {
      if (now.done == iterations_of(at, time)) state.scale *= part.factor;
    }
  } else if (part.kind == LearningRateKind::kCosine && now.ends()) {
    state.scale *= part.to;
  }
  // The next part counts epochs anew.
  if (now.ends()) state = {.scale = state.scale};
  return state;
}

LearningRateState after_epoch(const LearningRateOptions& options, LearningRateState state,
                              const TrainingTime& time, double metric) {
  const PartInForce next = part_in_force(options, time);
  const LearningRatePart& part = next.part;
  if (part.kind != LearningRateKind::kPlateau || next.is_over()) return state;
  // As in Keras an epoch that ends the cooldown counts already.
  if (state.cooling > 0) {
    --state.cooling;
    state.seen.waited = 0;
  }
  if (state.seen.note(metric, part.min_delta)) return state;
  if (state.cooling > 0) {
    state.seen.waited = 0;
  } else if (state.seen.waited >= part.patience &&
             full_rate(options, time) * state.scale > part.min_rate) {
    const double full = full_rate(options, time),
                 floor = std::min(state.scale, part.min_rate / full);
    state.scale *= part.factor;
    if (!options.parts.empty()) state.scale = std::max(state.scale, floor);
    state.cooling = part.cooldown;
    state.seen.waited = 0;
  }
  return state;
}

}  // namespace troupe::model
