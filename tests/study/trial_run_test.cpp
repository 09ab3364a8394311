// What the folder of a run tells, without a run.

#include "study/trial_run.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "telemetry/record.h"
#include "tests/study/study_support.h"
#include "tests/support/fails_with.h"

namespace troupe::study {
namespace {

using runtime::ErrorKind;
using testing::HasSubstr;
using Fault = RunFound::Fault;

std::string validation_line(std::uint64_t step, const std::string& comparison) {
  telemetry::Record record;
  record.step = step;
  record.body = telemetry::ValidationFacts{R"({"rows":[{"comparison":)" + comparison + "}]}"};
  return telemetry::line_of(record) + "\n";
}

Objective least(const std::string& figure, FigureSource of = FigureSource::kValidation) {
  return {figure, {}, of};
}

TEST(Figure, IsThatOfTheLastValidationAlone) {
  const TemporaryFolder folder;
  const std::string first = validation_line(1, R"({"merit":{"total":3.5},"spread":1})");
  const std::string second = validation_line(2, R"({"merit":{"total":2.5},"spread":null})");
  write_text(folder / "metrics.jsonl", first);
  EXPECT_EQ(*read_figure(least("spread"), folder.path(), ""), 1.0);
  write_text(folder / "metrics.jsonl", first + second);
  EXPECT_EQ(*read_figure(least("merit"), folder.path(), ""), 2.5);
  EXPECT_THAT(read_figure(least("spread"), folder.path(), ""),
              FailsWith(ErrorKind::kData, "no number for spread at its end"));
  EXPECT_THAT(read_figure(least("meritt"), folder.path(), ""),
              FailsWith(ErrorKind::kTopology, "did you mean \"merit\"?"));
  write_text(folder / "metrics.jsonl", validation_line(1, R"({"merit":null})"));
  EXPECT_THAT(read_figure(least("merit"), folder.path(), ""),
              FailsWith(ErrorKind::kData, "no number for merit"));
}

TEST(Figure, OfASummaryIsANumberOfIt) {
  const Objective objective = least("iterations", FigureSource::kSummary);
  EXPECT_EQ(*read_figure(objective, "/nowhere", R"({"iterations":7})"), 7.0);
  EXPECT_THAT(read_figure(objective, "/nowhere", R"({"iterations":null})"),
              FailsWith(ErrorKind::kData, "no number for iterations"));
  EXPECT_THAT(read_figure(objective, "/nowhere", "{}"),
              FailsWith(ErrorKind::kTopology, "it has none at all"));
  const Objective cost = least("bill.cost", FigureSource::kSummary);
  EXPECT_EQ(*read_figure(cost, "/nowhere", R"({"bill":{"cost":0.5,"seconds":9}})"), 0.5);
  EXPECT_THAT(read_figure(cost, "/nowhere", R"({"bill":{"cost":null}})"),
              FailsWith(ErrorKind::kData, "no number for bill.cost"));
  EXPECT_THAT(read_figure(cost, "/nowhere", R"({"bill":{"costs":1}})"),
              FailsWith(ErrorKind::kTopology, "did you mean \"bill.costs\"?"));
}

TEST(Curve, HasTheObjectiveOfEveryValidationOnce) {
  const TemporaryFolder folder;
  std::string text = validation_line(1, R"({"spread":5})") + validation_line(2, R"({"spread":4})");
  // A run that went on tells a step again.
  text += validation_line(2, R"({"spread":3})") + validation_line(3, R"({"spread":null})");
  write_text(folder / "metrics.jsonl", text + validation_line(4, R"({"spread":2})"));
  const Curve curve = read_curve(least("spread"), 7, folder.path());
  EXPECT_EQ(curve.trial, 7u);
  EXPECT_EQ(curve.points, (std::vector<std::pair<double, double>>{{1, 5}, {2, 3}, {4, 2}}));
  EXPECT_TRUE(read_curve(least("other"), 7, folder.path()).points.empty());
  EXPECT_TRUE(read_curve(least("spread"), 7, folder / "nowhere").points.empty());
  EXPECT_TRUE(read_curve(least("spread", FigureSource::kSummary), 7, folder.path()).points.empty());
  std::string many;
  for (std::uint64_t i = 0; i <= 999; ++i) many += validation_line(i, R"({"spread":1})");
  write_text(folder / "metrics.jsonl", many);
  const Curve thin = read_curve(least("spread"), 7, folder.path());
  EXPECT_EQ(thin.points.size(), 200u);
  EXPECT_EQ(thin.points.front().first, 0.0);
  EXPECT_EQ(thin.points.back().first, 999.0);
}

class RunEnds : public testing::Test {
 protected:
  RunFound found(int exit_code, const std::string& summary, std::uint32_t rung = 0) const {
    return found_by(loaded_, {0, rung, 0}, folder_.path(), {{exit_code, 0}, summary, "why", 1.0});
  }
  const TemporaryFolder folder_;
  const LoadedStudy loaded_ = parsed(
      "topology: toy\nspace: {train.seed: {integer: [1, 9]}}\n"
      "objective: {minimise: iterations, of: summary}\n"
      "stop: {kind: halving, from: 1 epoch, keep_one_in: 2}\n");
};

TEST_F(RunEnds, FaultOfTheMachineIsNoneOfTheTrial) {
  for (const int exit_code : {2, 3, 4, 5, 6}) {
    const RunFound before = found(exit_code, "");
    EXPECT_EQ(before.fault, Fault::kNone) << exit_code;
    EXPECT_EQ(before.result.error, "why");
  }
  EXPECT_EQ(found(1, "").fault, Fault::kMachine);
  write_text(folder_ / "topology.yaml", "");
  for (const int exit_code : {1, 2, 4}) EXPECT_EQ(found(exit_code, "").fault, Fault::kMachine);
  for (const int exit_code : {3, 5, 6}) EXPECT_EQ(found(exit_code, "").fault, Fault::kNone);
}

TEST_F(RunEnds, RunThatItsTopologyEndsBeforeItsRungIsNotComparedWithOthers) {
  EXPECT_EQ(found(0, R"({"epochs":1,"iterations":5})").result.figure, 5.0);
  const RunFound early = found(0, R"({"epochs":1,"iterations":5})", 1);
  EXPECT_EQ(early.fault, Fault::kEndsEarly);
  EXPECT_THAT(early.result.error, HasSubstr("train.epochs=2: train.iterations of the topology"));
  // By its own choice.
  const RunFound stopped = found(0, R"({"epochs":1,"iterations":5,"ended_early":"target"})", 1);
  EXPECT_EQ(stopped.result.figure, 5.0);
}

TEST_F(RunEnds, SummaryIsWholeWhereTheRungIs) {
  const std::string whole =
      R"({"epochs":2,"iterations":5,"stopped":false,"error":null,"exit_code":0})";
  EXPECT_EQ(whole_summary(loaded_, {0, 1, 0}, folder_.path()), "");
  write_text(folder_ / "summary.json", whole);
  EXPECT_EQ(whole_summary(loaded_, {0, 1, 0}, folder_.path()), whole);
  EXPECT_EQ(whole_summary(loaded_, {0, 2, 0}, folder_.path()), "");
  for (const char* other : {"", "{}", R"({"epochs":2,"stopped":true,"exit_code":0})",
                            R"({"epochs":2,"stopped":false,"exit_code":4})",
                            R"({"epochs":2,"stopped":false,"error":"lost","exit_code":0})"}) {
    write_text(folder_ / "summary.json", other);
    EXPECT_EQ(whole_summary(loaded_, {0, 1, 0}, folder_.path()), "") << other;
  }
}

}  // namespace
}  // namespace troupe::study
