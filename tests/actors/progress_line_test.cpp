#include "actors/progress_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace troupe::actors {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

ProgressOptions progress_options() {
  ProgressOptions options;
  options.first_iteration = 400;
  options.iterations = 800;
  options.iterations_per_epoch = 200;
  return options;
}

TEST(ProgressLine, TellsHowFarTheRunIsWithTheLossesAndTheRateOfThisProcess) {
  ProgressLine line(progress_options());
  for (std::uint64_t i = 400; i < 424; ++i) {
    const runtime::TimePoint now = std::chrono::milliseconds(500) * (i - 400);
    line.step(now, i, model::SlotKind::kDReal, 3.125, 16, false);
    line.step(now, i, model::SlotKind::kG, 4.25, 16, true);
  }
  const std::string text = line.text(std::chrono::seconds(23));
  EXPECT_THAT(text, StartsWith("epoch 3/4 [##########..........] 53 %  iteration 424/800"));
  EXPECT_THAT(text, HasSubstr("loss d 3.12 g 4.25  16 events/s"));
}

TEST(ProgressLine, NetworkThatHasMadeNoStepSinceAResumeHasNoLoss) {
  ProgressLine line(progress_options());
  line.step(std::chrono::seconds(1), 400, model::SlotKind::kG, 4.25, 16, true);
  EXPECT_THAT(line.text(std::chrono::seconds(1)), HasSubstr("loss d - g 4.25"));
}

}  // namespace
}  // namespace troupe::actors
