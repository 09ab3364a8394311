#include "telemetry/trace/trace_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "telemetry/trace/trace_arrows.h"
#include "tests/telemetry/telemetry_support.h"

namespace troupe::telemetry {
namespace {

using runtime::ActorTrace;
using runtime::TimePoint;
using runtime::TraceFlow;
using runtime::TraceRecord;
using testing::HasSubstr;
using testing::Not;

constexpr TraceFlow flow(std::uint32_t link, std::uint64_t number) { return {link, number}; }

TraceRecord sent(TraceFlow flow, int at) {
  return {.start = us(at), .end = us(at), .argument = 1, .flow = flow, .sent = true};
}

TraceRecord handler(int from, int to, TraceFlow flow = {}) {
  return {.start = us(from), .end = us(to), .argument = 1, .flow = flow};
}

ActorTrace actor(const std::string& name, std::vector<TraceRecord> records) {
  return {name, {{"batch", "compute"}, std::move(records), 0}};
}

std::string arrow_end(const std::string& phase, int id, int pid, int tid, const std::string& ts) {
  return R"("ph":")" + phase + R"(","id":)" + std::to_string(id) + R"(,"pid":)" +
         std::to_string(pid) + R"(,"tid":)" + std::to_string(tid) + R"(,"ts":)" + ts;
}

Trace of_one(std::vector<ActorTrace> actors) {
  Trace trace;
  trace.nodes.push_back({"local", {}, {}, std::move(actors)});
  return trace;
}

TEST(TraceJson, OfNothingIsStillOne) {
  EXPECT_THAT(trace_json({}), HasSubstr("\"traceEvents\":["));
  EXPECT_THAT(trace_json(of_one({})), HasSubstr(R"("name":"process_name","ph":"M","pid":1)"));
}

TEST(TraceJson, HasAnEventPerSpanAndARowPerActorAndIsInTheOrderOfTime) {
  ActorTrace loader{"loader", {{"start", "batch"}, {}, 2}};
  loader.trace.records = {{1, us(7), us(17), 640}, {0, us(5), us(7), 0}, {0, us(6), us(9), 0}};
  EXPECT_EQ(trace_json(of_one({loader, {"reducer", {}}})),
            R"json({"traceEvents":[
{"name":"process_name","ph":"M","pid":1,"tid":1,"args":{"name":"local"}},
{"name":"process_sort_index","ph":"M","pid":1,"tid":1,"args":{"sort_index":0}},
{"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"loader"}},
{"name":"thread_name","ph":"M","pid":1,"tid":2,"args":{"name":"loader (2)"}},
{"name":"thread_name","ph":"M","pid":1,"tid":3,"args":{"name":"reducer"}},
{"name":"start","ph":"X","pid":1,"tid":1,"ts":5.000,"dur":2.000,"args":{"argument":0}},
{"name":"start","ph":"X","pid":1,"tid":2,"ts":6.000,"dur":3.000,"args":{"argument":0}},
{"name":"batch","ph":"X","pid":1,"tid":1,"ts":7.000,"dur":10.000,"args":{"argument":640}}
],
"displayTimeUnit":"ns","otherData":{"arrows_left_out":0,"spans_left_out":0,"missing":[],"clock_error_us":{"local":0.000}},"ends":[]}
)json");
}

TEST(TraceJson, ArrowsLeadFromTheHandlerThatSendsToTheOneThatHandles) {
  const std::string text =
      trace_json(of_one({actor("a", {sent(flow(5, 1), 2), sent(flow(5, 2), 3), handler(1, 4)}),
                         actor("b", {handler(6, 7, flow(5, 1))})}));
  EXPECT_THAT(text, HasSubstr(arrow_end("s", 1, 1, 1, "2.000")));
  EXPECT_THAT(text, HasSubstr(arrow_end("f", 1, 1, 2, "6.000,\"bp\":\"e\"")));
  EXPECT_THAT(text, Not(HasSubstr(R"("id":2)"))) << "the second has not been handled";
  EXPECT_THAT(text, HasSubstr(R"({"flow":"5/2","ph":"s","tid":1,"ts":3.000})"));
}

TEST(TraceJson, WhatIsSentByAHandlerThatStillRunsHasNoArrow) {
  const std::string text = trace_json(of_one(
      {actor("a", {handler(0, 1), sent(flow(5, 1), 2)}), actor("b", {handler(6, 7, flow(5, 1))})}));
  EXPECT_THAT(text, Not(HasSubstr(R"("ph":"s","id")")));
  EXPECT_THAT(text, Not(HasSubstr(R"("id":1)")));
}

TEST(TraceJson, NodesAreMovedToOneClock) {
  Trace trace;
  trace.nodes.push_back({"head", {}, {}, {actor("a", {sent(flow(5, 1), 100), handler(100, 110)})}});
  trace.nodes.push_back({"member.0",
                         us(1000),
                         std::chrono::nanoseconds(1500),
                         {actor("b", {handler(1120, 1130, flow(5, 1))})}});
  trace.missing = {"member.1"};
  const std::string text = trace_json(trace);
  EXPECT_THAT(text, HasSubstr(R"("ph":"X","pid":2,"tid":2,"ts":120.000,"dur":10.000)"));
  EXPECT_THAT(text, HasSubstr(arrow_end("s", 1, 1, 1, "100.000")));
  EXPECT_THAT(text, HasSubstr(arrow_end("f", 1, 2, 2, "120.000")));
  EXPECT_THAT(text, HasSubstr(R"("name":"process_name","ph":"M","pid":2)"));
  EXPECT_THAT(text, HasSubstr(R"("missing":["member.1"])"));
  EXPECT_THAT(text, HasSubstr(R"("clock_error_us":{"head":0.000,"member.0":1.500})"));
}

TEST(TraceJson, FlowsWithinANodeMeanNothingOnOthers) {
  const TraceFlow own{TraceFlow::kWithinNode | 1, 1};
  Trace trace;
  trace.nodes.push_back({"head", {}, {}, {actor("a", {sent(own, 1), handler(0, 2)})}});
  trace.nodes.push_back({"member.0", {}, {}, {actor("b", {handler(5, 6, own)})}});
  EXPECT_THAT(trace_json(trace), Not(HasSubstr(R"("id":1)")));
}

TEST(TraceJson, OfTooManyRecordsTheNewestAreTold) {
  Trace trace =
      of_one({actor("a", {handler(0, 10), handler(20, 30)}), actor("b", {handler(5, 25)})});
  trace.most_records = 2;
  const std::string text = trace_json(trace);
  EXPECT_THAT(text, Not(HasSubstr(R"("ts":0.000)")));
  EXPECT_THAT(text, HasSubstr(R"("ts":20.000)"));
  EXPECT_THAT(text, HasSubstr(R"("ts":5.000)"));
}

TEST(TraceJson, NamesAreText) {
  ActorTrace odd{"a \"b\"", {{"\n"}, {handler(0, 1)}, 0}};
  const std::string text = trace_json(of_one({odd}));
  EXPECT_THAT(text, HasSubstr(R"("name":"a \"b\"")"));
  EXPECT_THAT(text, HasSubstr(R"("name":"\u000a")"));
}

ArrowEnd end(TraceFlow flow, bool sent, int at, int begins, int ends) {
  return {flow, sent, 0, 0, us(at), us(begins), us(ends)};
}

// The receiver took it before its clock, as far as that is known, says that it was sent.
TEST(TraceArrows, NeverLeadBackInTime) {
  const Arrows later =
      join_ends({end(flow(1, 1), true, 10, 8, 12), end(flow(1, 1), false, 9, 9, 20)});
  ASSERT_EQ(later.arrows.size(), 1U);
  EXPECT_EQ(later.arrows[0].from.time, us(10));
  EXPECT_EQ(later.arrows[0].to.time, us(10));
  const Arrows both =
      join_ends({end(flow(1, 1), true, 10, 6, 12), end(flow(1, 1), false, 5, 5, 7)});
  ASSERT_EQ(both.arrows.size(), 1U);
  EXPECT_EQ(both.arrows[0].from.time, us(7));
  EXPECT_EQ(both.arrows[0].to.time, us(7));
  const Arrows none =
      join_ends({end(flow(1, 1), true, 10, 8, 12), end(flow(1, 1), false, 5, 5, 7)});
  EXPECT_TRUE(none.arrows.empty());
  EXPECT_EQ(none.left_out, 1U);
}

ArrowEnd on(std::size_t node, ArrowEnd end) {
  end.node = node;
  return end;
}

// The second node's clock is 50 us behind, the third one's 20 us ahead, and neither is known.
TEST(TraceArrows, MoveClocksAsLittleAsTheyHaveTo) {
  const std::vector<ArrowEnd> ends = {
      on(0, end(flow(1, 1), true, 100, 90, 110)),  on(1, end(flow(1, 1), false, 60, 60, 70)),
      on(1, end(flow(2, 1), true, 65, 60, 70)),    on(0, end(flow(2, 1), false, 140, 140, 150)),
      on(0, end(flow(3, 1), true, 200, 190, 210)), on(2, end(flow(3, 1), false, 240, 240, 250)),
      on(2, end(flow(4, 1), true, 260, 255, 270)), on(0, end(flow(4, 1), false, 250, 250, 255))};
  const auto moves = moves_of_clocks(ends, 3);
  ASSERT_EQ(moves.size(), 3U);
  EXPECT_EQ(moves[0], us(0));
  EXPECT_EQ(moves[1], us(30));
  EXPECT_EQ(moves[2], us(-5));
}

TEST(TraceArrows, MoveNoClockWhereNodesContradictEachOther) {
  const auto moves = moves_of_clocks(
      {on(0, end(flow(1, 1), true, 100, 90, 110)), on(1, end(flow(1, 1), false, 60, 60, 70)),
       on(1, end(flow(2, 1), true, 65, 60, 70)), on(0, end(flow(2, 1), false, 30, 30, 40))},
      2);
  EXPECT_THAT(moves, testing::ElementsAre(us(0), us(0)));
  EXPECT_TRUE(moves_of_clocks({}, 0).empty());
}

TEST(TraceArrows, WhatIsNotOneOfEachJoinsNothing) {
  const Arrows twice = join_ends({end(flow(1, 1), true, 1, 0, 2), end(flow(1, 1), true, 1, 0, 2),
                                  end(flow(1, 1), false, 3, 3, 4), end(flow(1, 2), false, 5, 5, 6),
                                  end(flow(1, 2), false, 7, 7, 8)});
  EXPECT_TRUE(twice.arrows.empty());
  EXPECT_TRUE(twice.loose.empty());
}

}  // namespace
}  // namespace troupe::telemetry
