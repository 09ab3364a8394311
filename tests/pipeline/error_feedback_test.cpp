#include "pipeline/steps/error_feedback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/random.h"

namespace troupe::pipeline {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<std::byte>;

constexpr ReductionFormat kLossy[] = {ReductionFormat::kBf16, ReductionFormat::kInt8};
constexpr std::size_t kDrawn = 1500;  // not a multiple of anything

Bytes plain(ReductionFormat format, const Floats& values) {
  Bytes bytes(encoded_bytes(format, values.size()));
  encode(format, values, bytes);
  return bytes;
}

Floats meaning(ReductionFormat format, const Bytes& bytes, std::size_t count) {
  Floats values(count);
  decode(format, bytes, values);
  return values;
}

Floats drawn(std::uint32_t number, std::size_t count = kDrawn) {
  Floats values(count);
  runtime::fill_normal({.seed = 5, .micro_batch = number}, values.data(),
                       static_cast<std::uint32_t>(count));
  return values;
}

Bytes send(ErrorFeedback& feedback, ReductionFormat format, const Floats& values,
           std::size_t slot = 0, std::size_t begin = 0) {
  Bytes bytes(encoded_bytes(format, values.size()));
  feedback.encode(slot, begin, values, bytes);
  return bytes;
}

// A gradient that is about the same at every step, as a loss near its plateau gives it: in each
// block one large element, and small ones that the large one's scale, or bfloat16's unit, drops.
Floats gradient(std::uint32_t step) {
  Floats values = drawn(step);
  for (std::size_t i = 0; i < kDrawn; ++i) {
    const double steady = i % 256 == 0 ? 40.0 : 0.05 + 1e-4 * static_cast<double>(i % 100);
    values[i] = static_cast<float>(steady + 1e-3 * values[i]);
  }
  return values;
}

// What arrived of all steps' gradients, as the largest relative error of an element's mean.
double error_of_the_mean(ReductionFormat format, std::uint32_t steps, bool with_feedback) {
  ErrorFeedback feedback(format, {kDrawn});
  std::vector<double> meant(kDrawn), arrived(kDrawn);
  for (std::uint32_t step = 0; step < steps; ++step) {
    const Floats values = gradient(step);
    const Bytes bytes = with_feedback ? send(feedback, format, values) : plain(format, values);
    feedback.commit(0);
    const Floats given = meaning(format, bytes, kDrawn);
    for (std::size_t i = 0; i < kDrawn; ++i) {
      meant[i] += values[i];
      arrived[i] += given[i];
    }
  }
  double worst = 0;
  for (std::size_t i = 0; i < kDrawn; ++i) {
    worst = std::max(worst, std::fabs(arrived[i] - meant[i]) / std::fabs(meant[i]));
  }
  return worst;
}

TEST(ErrorFeedback, MeanOfWhatIsSentConvergesAndKeepsABiasWithoutFeedback) {
  // Without feedback int8 drops the small elements altogether: scale 40 / 127, more than twice
  // 0.06.
  EXPECT_EQ(error_of_the_mean(ReductionFormat::kInt8, 400, false), 1.0);
  // With it the sums differ by one residual at most: half a scale in 400 steps of 0.05 and more.
  EXPECT_LT(error_of_the_mean(ReductionFormat::kInt8, 400, true), 0.5 * 41 / 127 / (400 * 0.049));
  // A bias of bfloat16 of up to 2^-8 stays where the noise does not reach a neighbour.
  const double biased = error_of_the_mean(ReductionFormat::kBf16, 400, false);
  EXPECT_GT(biased, 1e-4);
  EXPECT_LT(error_of_the_mean(ReductionFormat::kBf16, 400, true), biased / 10);
}

TEST(ErrorFeedback, MeanGetsBetterWithEveryStep) {
  for (const ReductionFormat format : kLossy) {
    EXPECT_LT(error_of_the_mean(format, 800, true), 0.3 * error_of_the_mean(format, 80, true));
  }
}

TEST(ErrorFeedback, FirstStepIsSentAsWithoutAndTheSecondWithWhatTheFirstMissed) {
  for (const ReductionFormat format : kLossy) {
    ErrorFeedback feedback(format, {kDrawn});
    const Floats first = drawn(1), second = drawn(2);
    const Bytes sent = send(feedback, format, first);
    EXPECT_EQ(sent, plain(format, first));
    feedback.commit(0);
    const Floats given = meaning(format, sent, kDrawn);
    Floats wanted = second;
    for (std::size_t i = 0; i < kDrawn; ++i) wanted[i] += first[i] - given[i];
    EXPECT_EQ(send(feedback, format, second), plain(format, wanted));
  }
}

TEST(ErrorFeedback, RolledBackStepIsEncodedAgainToTheSameBytes) {
  for (const ReductionFormat format : kLossy) {
    ErrorFeedback feedback(format, {kDrawn});
    send(feedback, format, drawn(1));
    feedback.commit(0);
    const Bytes once = send(feedback, format, drawn(2));
    feedback.roll_back(0);
    send(feedback, format, drawn(3));  // another step in between leaves nothing either
    feedback.roll_back(0);
    EXPECT_EQ(send(feedback, format, drawn(2)), once);
    EXPECT_NE(once, plain(format, drawn(2))) << "the first step's residual had been lost";
  }
}

TEST(ErrorFeedback, SlotsInFlightTogetherAreApart) {
  const ReductionFormat format = ReductionFormat::kInt8;
  ErrorFeedback together(format, {kDrawn, kDrawn}), alone(format, {kDrawn, kDrawn});
  send(together, format, drawn(1), 0);
  send(together, format, drawn(2), 1);
  together.commit(0);
  together.roll_back(1);
  send(alone, format, drawn(1), 0);
  alone.commit(0);
  EXPECT_EQ(send(together, format, drawn(3), 0), send(alone, format, drawn(3), 0));
  EXPECT_EQ(send(together, format, drawn(3), 1), plain(format, drawn(3)));
}

TEST(ErrorFeedback, RangesInAnyOrderAreTheWhole) {
  const ReductionFormat format = ReductionFormat::kInt8;
  ErrorFeedback pieces(format, {kDrawn}), whole(format, {kDrawn});
  const std::size_t cut = 2 * kInt8Block;
  for (std::uint32_t step = 0; step < 4; ++step) {
    const Floats values = drawn(step);
    Bytes bytes = send(pieces, format, Floats(values.begin() + cut, values.end()), 0, cut);
    const Bytes front = send(pieces, format, Floats(values.begin(), values.begin() + cut), 0, 0);
    bytes.insert(bytes.begin(), front.begin(), front.end());
    EXPECT_EQ(bytes, send(whole, format, values));
    pieces.commit(0);
    whole.commit(0);
  }
}

TEST(ErrorFeedback, ElementsNotEncodedInAStepKeepTheirResiduals) {
  const ReductionFormat format = ReductionFormat::kInt8;
  ErrorFeedback feedback(format, {kDrawn}), reference(format, {kDrawn});
  for (ErrorFeedback* each : {&feedback, &reference}) {
    send(*each, format, drawn(1));
    each->commit(0);
  }
  const Floats front(2 * kInt8Block, 0.3f);
  send(feedback, format, front);
  feedback.commit(0);
  const Bytes after = send(feedback, format, drawn(2)), before = send(reference, format, drawn(2));
  const auto cut = static_cast<std::ptrdiff_t>(encoded_bytes(format, front.size()));
  EXPECT_TRUE(std::equal(after.begin() + cut, after.end(), before.begin() + cut));
  EXPECT_FALSE(std::equal(after.begin(), after.begin() + cut, before.begin()));
}

TEST(ErrorFeedback, NonFiniteValuesLeaveNothingBehind) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (const ReductionFormat format : kLossy) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity(), kLargest}) {
      ErrorFeedback feedback(format, {2});
      send(feedback, format, {bad, 1.0f});
      feedback.commit(0);
      const Floats next{0.5f, 1.0f};
      const Bytes bytes = send(feedback, format, next);
      const Floats given = meaning(format, bytes, 2);
      EXPECT_TRUE(std::isfinite(given[0]) && std::isfinite(given[1])) << bad;
    }
  }
}

TEST(ErrorFeedbackDeathTest, FormatThatDropsNothingBreaksAnInvariant) {
  EXPECT_DEATH(ErrorFeedback(ReductionFormat::kFp32, {kDrawn}), "nothing is dropped");
}

TEST(ErrorFeedbackDeathTest, ElementsTwiceInAStepOrBeyondTheSlotBreakAnInvariant) {
  const ReductionFormat format = ReductionFormat::kInt8;
  ErrorFeedback feedback(format, {100});
  send(feedback, format, Floats(20), 0, 40);
  for (const std::size_t begin : {21u, 40u, 45u, 59u}) {
    EXPECT_DEATH(send(feedback, format, Floats(20), 0, begin), "twice in a step") << begin;
  }
  EXPECT_DEATH(send(feedback, format, Floats(40), 0, 30), "twice in a step");
  send(feedback, format, Floats(20), 0, 20);
  send(feedback, format, Floats(20), 0, 60);
  EXPECT_DEATH(send(feedback, format, Floats(20), 0, 81), "beyond the slot");
  EXPECT_DEATH(send(feedback, format, Floats(20), 1, 0), "a slot that the schedule");
  Bytes small(3);
  EXPECT_DEATH(feedback.encode(0, 80, Floats(20), small), "room for other elements");
}

}  // namespace
}  // namespace troupe::pipeline
