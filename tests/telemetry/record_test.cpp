#include "telemetry/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "tests/telemetry/telemetry_support.h"

namespace troupe::telemetry {
namespace {

using testing::Contains;
using testing::SizeIs;

// Returns the body, which is of that kind.
template <class Body>
Body body_in(const Record& record) {
  EXPECT_EQ(kind_of(record), Body::kKind);
  const Body* const body = std::get_if<Body>(&record.body);
  return body != nullptr ? *body : Body{};
}

MATCHER_P2(IsPoint, series, value, "") { return arg.series == series && arg.value == value; }

// Each kind of line as docs/watching.md lists its fields.
const std::string kRun =
    R"({"kind":"run","step":40,"time":1.000,"name":"toy","model":"gan3d_12","version":"0.1.0",)"
    R"("schedule":["d_real","g"],"losses":[["generation",3],["ecal",0.1]],"iterations":22,)"
    R"("iterations_per_epoch":11,"micro_batches":4,"micro_batch":16,"price_per_node_hour":2.5,)"
    R"("node":"head","host":"a","role":"head","pid":7})";
const std::string kStep =
    R"({"kind":"step","step":7,"time":12.500,"epoch":3,"iteration":1,"slot":"g","attempts":2,)"
    R"("events":16,"event_sum":"00000000000000ff","losses":{"generation":1.5,"ecal":null},)"
    R"("seconds":{"load":0.25,"compute":1,"reduce":0.5,"apply":0.125},"state_hash":"0a"})";
const std::string kNode =
    R"({"kind":"node","step":3,"time":1.000,"node":"member.1","state":"dead","host":"a",)"
    R"("role":"member","pid":9,"address":"","cause":"was killed by signal 9 [Killed]"})";
const std::string kView =
    R"({"kind":"view","step":3,"time":1.000,"fields":{"view":"1.2","first_step":3,)"
    R"("members":["member.0","member.2"],"joined":["member.2"],"causes":["member.1 is gone"],)"
    R"("shared_anew":"","halted_seconds":0.5,"micro_batches_taken_over":2,"kept_bytes":300,)"
    R"("time":null}})";
const std::string kCheckpoint =
    R"({"kind":"checkpoint","step":8,"time":1.000,"fields":{"file":"step-8.h5","bytes":9,)"
    R"("state_hash":"0a"}})";
const std::string kValidation =
    R"({"kind":"validation","step":8,"time":1.000,"fields":{"rows":[{"name":"data",)"
    R"("comparison":null,"floor":{"hits_error":0.125,"unlike":[]}},{"name":"generated","comparison":{"merit":{"total":0.5,"angle":null,)"
    R"("energy_bins":4},"hits_error":0.25,"unlike":["response"]}}]}})";
const std::string kShowers =
    R"({"kind":"showers","step":8,"time":1.000,"file":"showers/step-8.json"})";
const std::string kTestLosses =
    R"({"kind":"test_losses","step":8,"time":1.000,"slot":"test_g","events":500,)"
    R"("losses":{"ecal":0.5,"generation":2}})";
const std::string kSamples =
    R"({"kind":"samples","step":8,"time":1.000,"values":{"node/head/cores":[2,1.5,1,2,2]}})";

const std::string kBill =
    R"({"kind":"bill","step":8,"time":1.000,"pools":[{"name":"hpc","price_per_node_hour":0.5,)"
    R"("workers":2,"wanted":4,"running":3,"node_hours":1.5,"cost":0.75,"iterations":310.5,)"
    R"("speed":2.25}],"seconds":3600,"cost":0.75,"cost_per_epoch":0.25,"other_iterations":289.5,)"
    R"("other_speed":2,"seconds_left":1200,"cost_at_end":1.5,"first_seconds":null,)"
    R"("first_cost":null,"decision":"4 of hpc: the run ends in 20 min"})";

TEST(Record, LineOfEachKindComesBackAsItWas) {
  for (const std::string& line :
       {kRun, kNode, kView, kCheckpoint, kShowers, kTestLosses, kSamples, kBill}) {
    EXPECT_EQ(line_of(read(line)), line);
  }
  const Record step = read(kStep);
  EXPECT_EQ(line_of(step).find(R"("losses":{"ecal":null,"generation":1.5})"),
            kStep.find(R"("losses")"));
  EXPECT_EQ(line_of(read(line_of(step))), line_of(step));
  EXPECT_EQ(nlohmann::json::parse(line_of(step)), nlohmann::json::parse(kStep));
  EXPECT_EQ(nlohmann::json::parse(line_of(read(kValidation))), nlohmann::json::parse(kValidation));
}

TEST(Record, TestLossesBecomeLossesOfSlotsOfTheirOwn) {
  const auto points = points_of(read(kTestLosses));
  EXPECT_THAT(points, SizeIs(2));
  EXPECT_THAT(points, Contains(IsPoint("loss/test_g/generation", 2.0)));
}

TEST(Record, StepBecomesLossesAndSeconds) {
  const Record record = read(kStep);
  EXPECT_EQ(record.time, 12.5);
  EXPECT_EQ(record.step, 7);
  EXPECT_THAT(points_of(record), Contains(IsPoint("loss/g/generation", 1.5)));
  EXPECT_THAT(points_of(record), Contains(IsPoint("seconds/compute", 1.0)));
  EXPECT_THAT(points_of(record), SizeIs(5)) << "a loss that is no number is no point";
  const auto step = body_in<StepFacts>(record);
  EXPECT_EQ(step.iteration, 1);
  EXPECT_EQ(step.events, 16);
  EXPECT_EQ(step.apply_seconds, 0.125);
  EXPECT_EQ(mark_of(record), "");
}

TEST(Record, RunTellsItsFactsAndItsNode) {
  const auto run = body_in<RunRecord>(read(kRun));
  EXPECT_EQ(run.facts.schedule, (std::vector<std::string>{"d_real", "g"}));
  EXPECT_EQ(run.facts.losses[1].first, "ecal");
  EXPECT_EQ(run.facts.losses[1].second, 0.1);
  EXPECT_EQ(run.facts.iterations, 22);
  EXPECT_EQ(run.facts.price_per_node_hour, 2.5);
  EXPECT_EQ(run.node.role, "head");
  EXPECT_EQ(run.node.state, "running");
  EXPECT_EQ(mark_of(read(kRun)), "went on at step 40");
}

TEST(Record, LostNodeIsAMarkWithItsCause) {
  EXPECT_EQ(mark_of(read(kNode)), "member.1 was lost: was killed by signal 9 [Killed]");
  EXPECT_EQ(body_in<NodeFacts>(read(kNode)).role, "member");
}

TEST(Record, DecisionIsAMark) {
  EXPECT_EQ(mark_of(read(kBill)), "4 of hpc: the run ends in 20 min");
}

TEST(Record, ViewTellsWhoJoinedAndWhy) {
  EXPECT_EQ(mark_of(read(kView)), "2 members; member.2 joined; member.1 is gone");
  EXPECT_THAT(points_of(read(kView)), Contains(IsPoint("members", 2.0)));
}

TEST(Record, ValidationHasItsRowsAndTheFiguresOfTheLastAndTheFloorOfTheFirst) {
  const Record record = read(kValidation);
  EXPECT_THAT(points_of(record), Contains(IsPoint("validation/total", 0.5)));
  EXPECT_THAT(points_of(record), Contains(IsPoint("validation/hits_error", 0.25)));
  EXPECT_THAT(points_of(record), Contains(IsPoint("validation/floor/hits_error", 0.125)));
  EXPECT_THAT(points_of(record), SizeIs(3));
  EXPECT_THAT(rows_of(record), testing::HasSubstr(R"("name":"generated")"));
}

TEST(Record, MarkOfAValidationIsItsFigureOfMeritAndWhetherShowersAreLikeTheData) {
  EXPECT_EQ(mark_of(read(kValidation)), "figure of merit 0.5, nothing like the data");
  EXPECT_EQ(mark_of(read(R"({"kind":"validation","step":8,"fields":{"rows":[{"comparison":)"
                         R"({"merit":{"total":0.5}}}]}})")),
            "figure of merit 0.5");
  EXPECT_EQ(mark_of(read(R"({"kind":"validation","step":8,"fields":{"rows":[{}]}})")),
            "no figure of merit");
}

TEST(Record, ValidationTellsTheFigureThatChoosesTheBest) {
  const auto validation = [](const std::string& figure) {
    return read(R"({"kind":"validation","step":8,"fields":{"rows":[{"comparison":)"
                R"({"merit":{"total":0.5}},"chosen":{"figure":")" +
                figure + R"(","title":"its error","unit":"%","value":0.75,"distance":0.25}}]}})");
  };
  EXPECT_EQ(mark_of(validation("response_energy")), "figure of merit 0.5, its error 0.75 %");
  EXPECT_EQ(mark_of(validation("merit")), "figure of merit 0.5");
  EXPECT_THAT(points_of(validation("merit")), Contains(IsPoint("validation/distance", 0.25)));
}

TEST(Record, SamplesBecomePointsOfTheirMeans) {
  const Record record = read(
      R"({"kind":"samples","time":1,"step":8,"values":{"node/head/cores":[2,1.5,1,2,2],"bad":[1],"worse":[1,"x",2,3,4]}})");
  ASSERT_THAT(points_of(record), SizeIs(1));
  EXPECT_THAT(points_of(record), Contains(IsPoint("node/head/cores", 1.5)));
}

TEST(Record, KindThatIsNotKnownSaysNothing) {
  const Record record = read(R"({"kind":"comet","step":8})");
  EXPECT_EQ(kind_of(record), "");
  EXPECT_THAT(points_of(record), SizeIs(0));
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
      const Record record = read(fmt::format(R"({{"kind":"{}","step":1,{}}})", kind, rest));
      EXPECT_EQ(kind_of(record), kind);
      EXPECT_TRUE(nlohmann::json::accept(line_of(record))) << line_of(record);
    }
  }
}

}  // namespace
}  // namespace troupe::telemetry
