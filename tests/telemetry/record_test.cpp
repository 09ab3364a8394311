#include "telemetry/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

namespace troupe::telemetry {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;

Record read(std::string_view line) {
  const auto record = read_record(line);
  EXPECT_TRUE(record.ok()) << line;
  return record.ok() ? *record : Record{};
}

MATCHER_P2(IsPoint, series, value, "") { return arg.series == series && arg.value == value; }

TEST(Record, StepBecomesLossesAndSeconds) {
  const Record record =
      read(R"({"kind":"step","time":12.5,"step":7,"epoch":0,"iteration":1,"slot":"g","attempts":1,)"
           R"("events":16,"event_sum":"00","losses":{"generation":1.5,"ecal":null},)"
           R"("seconds":{"load":0.25,"compute":1,"reduce":0.5,"apply":0.25},"state_hash":"00"})");
  EXPECT_EQ(record.kind, "step");
  EXPECT_EQ(record.time, 12.5);
  EXPECT_EQ(record.step, 7);
  EXPECT_THAT(record.points, Contains(IsPoint("loss/g/generation", 1.5)));
  EXPECT_THAT(record.points, Contains(IsPoint("seconds/compute", 1.0)));
  EXPECT_THAT(record.points, SizeIs(5));
  ASSERT_TRUE(record.made);
  EXPECT_EQ(record.made->iteration, 1);
  EXPECT_EQ(record.made->events, 16);
  EXPECT_EQ(record.made->seconds, 2.0);
  EXPECT_EQ(record.mark, "");
}

TEST(Record, RunTellsItsFactsAndItsNode) {
  const Record record =
      read(R"({"kind":"run","time":1,"step":40,"name":"toy","model":"gan3d_12","version":"0.1.0",)"
           R"("schedule":["d_real","g"],"losses":[["generation",3.0],["ecal",0.1]],)"
           R"("iterations":22,"iterations_per_epoch":11,"micro_batches":4,"micro_batch":16,)"
           R"("price_per_node_hour":2.5,"node":"head","host":"a","role":"head","pid":7})");
  ASSERT_TRUE(record.run);
  EXPECT_EQ(record.run->schedule, (std::vector<std::string>{"d_real", "g"}));
  EXPECT_EQ(record.run->losses[1].first, "ecal");
  EXPECT_EQ(record.run->losses[1].second, 0.1);
  EXPECT_EQ(record.run->iterations, 22);
  EXPECT_EQ(record.run->price_per_node_hour, 2.5);
  ASSERT_TRUE(record.node);
  EXPECT_EQ(record.node->role, "head");
  EXPECT_EQ(record.node->state, "running");
  EXPECT_EQ(record.mark, "went on at step 40");
}

TEST(Record, LostNodeIsAMarkWithItsCause) {
  const Record record =
      read(R"({"kind":"node","time":1,"step":3,"node":"member.1","state":"dead","host":"a",)"
           R"("pid":9,"address":"","cause":"was killed by signal 9 [Killed]"})");
  EXPECT_EQ(record.mark, "member.1 was lost: was killed by signal 9 [Killed]");
  ASSERT_TRUE(record.node);
  EXPECT_EQ(record.node->role, "member");
}

TEST(Record, ViewTellsWhoJoinedAndWhy) {
  const Record record = read(
      R"({"kind":"view","time":1,"step":3,"fields":{"view":"1.2","members":["member.0","member.2"],)"
      R"("joined":["member.2"],"causes":["member.1 is gone"],"shared_anew":""}})");
  EXPECT_EQ(record.mark, "2 members; member.2 joined; member.1 is gone");
  EXPECT_THAT(record.points, Contains(IsPoint("members", 2.0)));
}

TEST(Record, ValidationKeepsItsRowsAndTheFiguresOfTheLast) {
  const Record record = read(
      R"({"kind":"validation","time":1,"step":8,"fields":{"rows":[{"name":"data","comparison":null},)"
      R"({"name":"generated","comparison":{"merit":{"total":0.5,"angle":null,"energy_bins":4},)"
      R"("hits_error":0.25}}]}})");
  EXPECT_THAT(record.points, Contains(IsPoint("validation/total", 0.5)));
  EXPECT_THAT(record.points, Contains(IsPoint("validation/hits_error", 0.25)));
  EXPECT_THAT(record.points, SizeIs(2));
  EXPECT_THAT(record.rows, HasSubstr(R"("name":"generated")"));
  EXPECT_EQ(record.mark, "figure of merit 0.5");
}

TEST(Record, MarkOfAValidationSaysThatItsShowersAreNothingLikeTheData) {
  const Record record =
      read(R"({"kind":"validation","time":1,"step":8,"fields":{"rows":[{"name":"generated",)"
           R"("comparison":{"merit":{"total":0.5},"unlike":["response","energy"]}}]}})");
  EXPECT_EQ(record.mark, "figure of merit 0.5, nothing like the data");
}

TEST(Record, SamplesBecomePointsOfTheirMeans) {
  const Record record = read(
      R"({"kind":"samples","time":1,"step":8,"values":{"node/head/cores":[2,1.5,1,2,2],"bad":[1]}})");
  ASSERT_THAT(record.points, SizeIs(1));
  EXPECT_THAT(record.points, Contains(IsPoint("node/head/cores", 1.5)));
}

TEST(Record, KindThatIsNotKnownIsPassedOn) {
  const Record record = read(R"({"kind":"comet","step":8})");
  EXPECT_EQ(record.kind, "comet");
  EXPECT_THAT(record.points, SizeIs(0));
}

TEST(Record, WhatIsNoLineOfMetricsIsRefused) {
  for (const char* line :
       {"", "{", "[]", "null", "7", R"({"kind":"step"})", R"({"step":1})", R"({"kind":5,"step":1})",
        R"({"kind":"step","step":-1})", R"({"kind":"step","step":1} x)", "\xff\xfe",
        R"({"kind":"a","step":1e9})"}) {
    const auto record = read_record(line);
    EXPECT_FALSE(record.ok()) << line;
  }
}

TEST(Record, FieldsOfAnotherKindAreTakenAsAbsent) {
  for (const char* kind : {"run", "step", "validation", "view", "node", "samples", "checkpoint"}) {
    for (
        const char* rest :
        {R"("losses":5,"seconds":"x","fields":[],"values":[1],"schedule":{},"node":1)",
         R"("losses":{"a":"b"},"seconds":{"load":"x"},"fields":{"rows":[5]},"values":{"a":null})",
         R"("losses":[[1,"a"],5],"fields":{"rows":[{"comparison":[]}],"members":"x"},"slot":[])"}) {
      read(fmt::format(R"({{"kind":"{}","step":1,{}}})", kind, rest));
    }
  }
}

}  // namespace
}  // namespace troupe::telemetry
