#include "telemetry/trace/trace_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/telemetry/telemetry_support.h"

namespace troupe::telemetry {
namespace {

using runtime::TimePoint;
using runtime::TraceRecord;
using testing::ElementsAre;

TraceRecord span(int from, int to) { return {.start = us(from), .end = us(to)}; }

std::vector<int> starts(const TraceRows& rows) {
  std::vector<int> all;
  for (const TraceRecord& each : rows.spans()) {
    all.push_back(static_cast<int>(each.start / std::chrono::microseconds(1)));
  }
  return all;
}

std::vector<std::size_t> places(const TraceRows& rows) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < rows.spans().size(); ++i) all.push_back(rows.row(i));
  return all;
}

TEST(TraceRows, SpansWithinOthersShareTheirRow) {
  const TraceRows rows({span(2, 9), span(1, 10), span(10, 12)});
  EXPECT_THAT(starts(rows), ElementsAre(1, 2, 10));
  EXPECT_THAT(places(rows), ElementsAre(0, 0, 0));
  EXPECT_EQ(rows.count(), 1U);
}

TEST(TraceRows, SpansThatCrossOthersHaveRowsOfTheirOwn) {
  const TraceRows rows({span(1, 10), span(9, 30), span(15, 40), span(12, 20), span(30, 50)});
  EXPECT_THAT(starts(rows), ElementsAre(1, 9, 12, 15, 30));
  EXPECT_THAT(places(rows), ElementsAre(0, 1, 0, 2, 0));
  EXPECT_EQ(rows.count(), 3U);
}

TEST(TraceRows, AreNoMoreThanSomeWhateverANodeSays) {
  std::vector<TraceRecord> spans;
  for (int i = 0; i < 400'000; ++i) spans.push_back(span(i, i + 400'000));
  const TraceRows rows(spans);
  EXPECT_EQ(rows.count(), 32U);
  EXPECT_EQ(rows.spans().size() + rows.left_out(), spans.size());
  EXPECT_EQ(rows.spans().size(), 32U);
}

TEST(TraceRows, LeaveOutWhatIsNoSpan) {
  const TraceRecord sent{.start = us(3), .end = us(3), .sent = true};
  const TraceRows rows({sent, span(5, 4)});
  EXPECT_TRUE(rows.spans().empty());
  EXPECT_EQ(rows.count(), 1U);
}

TEST(TraceRows, FindTheInnermostSpanAtATime) {
  const TraceRows rows({span(1, 10), span(2, 4), span(5, 6), span(10, 20), span(30, 30)});
  const auto start_at = [&](int time) {
    const auto found = rows.span_at(us(time));
    return found ? static_cast<int>(rows.spans()[*found].start / std::chrono::microseconds(1)) : -1;
  };
  EXPECT_EQ(start_at(0), -1);
  EXPECT_EQ(start_at(1), 1);
  EXPECT_EQ(start_at(3), 2);
  EXPECT_EQ(start_at(8), 1);
  EXPECT_EQ(start_at(10), 10) << "the one that begins, not the one that ends";
  EXPECT_EQ(start_at(25), -1);
  EXPECT_EQ(start_at(30), 30);
}

}  // namespace
}  // namespace troupe::telemetry
