// What a replica computes and sends while the Validator judges a state that may end training.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>

#include <fmt/format.h>

#include "tests/actors/rehearsal.h"

namespace troupe::actors {
namespace {

using runtime::Context;

// The step itself is computed meanwhile, and the next one goes ahead of it as far as ever.
TEST(EarlyEnd, HeaderBehindAJudgedStateWaitsForTheFigureThatItCarries) {
  for (const bool overlap : {true, false}) {
    Setting setting;
    setting.iterations = 5;
    setting.overlap = overlap;
    setting.figures = {3.0, HUGE_VAL, 0.5, 0.1};
    Rehearsal rehearsal(setting);
    std::map<std::uint64_t, double> carried;
    rehearsal.on_header = [&](Context&, const pipeline::StepHeader& header) {
      if (header.judged) carried[header.step] = header.distance;
      return true;
    };
    rehearsal.run();
    ASSERT_TRUE(rehearsal.report && !rehearsal.report->error);
    EXPECT_EQ(carried, (std::map<std::uint64_t, double>{{4, 3.0}, {8, HUGE_VAL}, {12, 0.5}}));
    for (const std::uint64_t step : {4, 8, 12}) {
      const std::string found = fmt::format("found {}", step);
      EXPECT_TRUE(rehearsal.in_order(fmt::format("asked {}", step), found));
      EXPECT_TRUE(rehearsal.in_order(fmt::format("bucket {}.0", step), found));
      EXPECT_TRUE(rehearsal.in_order(found, fmt::format("header {}.0", step)));
    }
    EXPECT_EQ(rehearsal.place("asked 0"), std::ssize(rehearsal.log));
    // The third figure ends training with the iteration that is behind it.
    EXPECT_EQ(rehearsal.report->state->step(4), 16u);
    EXPECT_EQ(rehearsal.place("asked 16"), std::ssize(rehearsal.log));
    EXPECT_EQ(rehearsal.place("bucket 16.0"), std::ssize(rehearsal.log));
  }
}

// Its only step carries the figure, so nothing can be known of the end before it is summed.
TEST(EarlyEnd, OfOneStepAnIterationComputesNothingAheadOfAFigure) {
  Setting setting;
  setting.schedule = {model::SlotKind::kDReal};
  setting.iterations = 5;
  setting.figures = {3.0, 2.0, 0.5, 0.1};
  Rehearsal rehearsal(setting);
  rehearsal.run();
  ASSERT_TRUE(rehearsal.report && !rehearsal.report->error);
  EXPECT_EQ(rehearsal.report->state->iteration, 4u);
  EXPECT_EQ(rehearsal.place("bucket 4.0"), std::ssize(rehearsal.log));
}

}  // namespace
}  // namespace troupe::actors
