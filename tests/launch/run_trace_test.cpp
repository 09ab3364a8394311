#include "launch/run_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::launch {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string trace_of(std::vector<runtime::TraceRecord> records) {
  runtime::ActorTrace replica{"replica.0", {{"timer", "compute", "reduce"}, {}, 0}};
  replica.trace.records = std::move(records);
  const runtime::ActorTrace idle{"reducer", {}};
  return trace_json({replica, idle});
}

std::string row(int number, const std::string& name) {
  return R"("tid":)" + std::to_string(number) + R"(,"args":{"name":")" + name + R"("}})";
}

std::string span(const std::string& name, int on_row, int start) {
  return R"({"name":")" + name + R"(","ph":"X","pid":1,"tid":)" + std::to_string(on_row) +
         R"(,"ts":)" + std::to_string(start) + ".000";
}

constexpr runtime::TimePoint us(int number) { return std::chrono::microseconds(number); }

TEST(RunTrace, SpansWithinOthersShareTheirRow) {
  const std::string text =
      trace_of({{1, us(2), us(9), 0}, {0, us(1), us(10), 0}, {0, us(10), us(12), 0}});
  EXPECT_THAT(text, HasSubstr(span("timer", 0, 1)));
  EXPECT_THAT(text, HasSubstr(span("compute", 0, 2)));
  EXPECT_THAT(text, HasSubstr(span("timer", 0, 10)));
  EXPECT_THAT(text, HasSubstr(row(1, "reducer")));
}

TEST(RunTrace, SpansThatCrossOthersHaveRowsOfTheirOwn) {
  const std::string text = trace_of({{0, us(1), us(10), 0},
                                     {2, us(9), us(30), 6},
                                     {2, us(15), us(40), 7},
                                     {0, us(12), us(20), 0},
                                     {2, us(30), us(50), 8}});
  EXPECT_THAT(text, HasSubstr(span("timer", 0, 1)));
  EXPECT_THAT(text, HasSubstr(span("reduce", 1, 9)));
  EXPECT_THAT(text, HasSubstr(span("reduce", 2, 15)));
  EXPECT_THAT(text, HasSubstr(span("timer", 0, 12)));
  EXPECT_THAT(text, HasSubstr(span("reduce", 0, 30)));
  EXPECT_THAT(text, HasSubstr(row(0, "replica.0")));
  EXPECT_THAT(text, HasSubstr(row(1, "replica.0 (2)")));
  EXPECT_THAT(text, HasSubstr(row(2, "replica.0 (3)")));
  EXPECT_THAT(text, HasSubstr(row(3, "reducer")));
}

}  // namespace
}  // namespace troupe::launch
