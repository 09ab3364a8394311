// The pace of a run, from the records that it left.

#include "launch/run/measured_pace.h"

#include <gmock/gmock.h>

#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "telemetry/record.h"
#include "tests/support/temporary_folder.h"

namespace troupe::launch {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

// Iterations of 8 micro-batches and two slots, by members of two replicas.
class MeasuredPaceTest : public testing::Test {
 protected:
  MeasuredPaceTest() {
    std::ofstream(folder_ / "topology.yaml")
        << "name: paced\nmodel: {zoo: gan3d_12}\n"
           "data: {train: synthetic, synthetic: {events: 200}, preprocessing: {power: 0.35}}\n"
           "train: {micro_batch: 4, micro_batches: 8}\nactors: {replica: {count: 2}}\n";
    begin();
  }

  void write(telemetry::RecordBody body) {
    metrics_ << telemetry::line_of({.body = std::move(body)}) << '\n';
    metrics_.flush();
  }
  void begin() {
    telemetry::RunRecord run;
    run.facts.schedule = {"d_real", "g"};
    run.facts.micro_batches = 8;
    run.facts.iterations_per_epoch = 6;
    write(run);
  }
  void step(std::uint64_t iteration, double busy, double all) {
    telemetry::StepFacts step;
    step.iteration = iteration;
    step.load_seconds = 0.25 * busy;
    step.compute_seconds = 0.75 * busy;
    step.reduce_seconds = 0.75 * (all - busy);
    step.apply_seconds = 0.25 * (all - busy);
    write(step);
  }
  // Two equal steps each, 0.8 of them busy.
  void iterations(std::uint64_t first, const std::vector<double>& seconds) {
    for (const double all : seconds) {
      for (int slot = 0; slot < 2; ++slot) step(first, 0.4 * all, 0.5 * all);
      ++first;
    }
  }
  void members(const std::vector<std::string>& names) {
    telemetry::ViewFacts view;
    view.members = names;
    write(view);
  }
  runtime::Result<MeasuredPace> read(const std::string& setting = "train.seed=1") const {
    const auto planned = config::load_topology(folder_ / "topology.yaml", {setting});
    EXPECT_TRUE(planned.ok());
    return read_pace(folder_.path(), planned->topology);
  }

  TemporaryFolder folder_;
  std::ofstream metrics_{folder_ / "metrics.jsonl"};
};

TEST_F(MeasuredPaceTest, IsThatOfAllIterationsButTheFirst) {
  iterations(0, {9.0, 1.0, 2.0, 3.0});
  const auto pace = read();
  ASSERT_TRUE(pace.ok()) << pace.error().message;
  EXPECT_THAT(pace->iterations,
              ElementsAre(DoubleNear(1.0, 1e-6), DoubleNear(2.0, 1e-6), DoubleNear(3.0, 1e-6)));
  EXPECT_NEAR(pace->busy_seconds, 1.6, 1e-6);
  EXPECT_EQ(pace->workers, 2);
  EXPECT_NEAR(pace->speed, 8 / 2 / 1.6, 1e-6);
  EXPECT_EQ(pace->micro_batches, 8);
  EXPECT_EQ(pace->iterations_per_epoch, 6);
}

TEST_F(MeasuredPaceTest, IsThatOfTheNewestMembersThatMadeTwo) {
  for (const char* name : {"member.0", "member.1"}) {
    write(telemetry::NodeFacts{.name = name, .state = "running"});
  }
  iterations(0, {1.0, 1.0});
  members({"member.0", "member.1", "member.2"});
  iterations(2, {5.0, 2.0});
  EXPECT_EQ(read()->workers, 6);
  EXPECT_THAT(read()->iterations, ElementsAre(DoubleNear(2.0, 1e-6)));
  members({"member.1"});
  iterations(4, {7.0});
  EXPECT_EQ(read()->workers, 6) << "one alone has made its first only";
  iterations(5, {4.0});
  EXPECT_EQ(read()->workers, 2);
  EXPECT_THAT(read()->iterations, ElementsAre(DoubleNear(4.0, 1e-6)));
}

TEST_F(MeasuredPaceTest, LeavesOutWhatIsNotWhole) {
  iterations(0, {1.0, 1.0});
  step(2, 0.1, 0.1);
  iterations(3, {2.0});
  EXPECT_THAT(read()->iterations, ElementsAre(DoubleNear(1.0, 1e-6), DoubleNear(2.0, 1e-6)));
  begin();  // another session
  iterations(4, {9.0, 3.0});
  EXPECT_THAT(read()->iterations, ElementsAre(DoubleNear(3.0, 1e-6)));
}

TEST_F(MeasuredPaceTest, KnowsTheSpeedsThatTheBillTold) {
  iterations(0, {1.0, 1.0});
  telemetry::BillFacts bill;
  bill.pools = {{.name = "hpc", .speed = 2.5}, {.name = "cloud"}};
  write(bill);
  EXPECT_NEAR(read()->speed, 8 / 2 / 0.8, 1e-6) << "there was no other worker";
  EXPECT_THAT(read()->pool_speeds, ElementsAre(testing::Pair("hpc", 2.5)));
  bill.other_speed = 7.0;
  write(bill);
  EXPECT_EQ(read()->speed, 7.0);
}

TEST_F(MeasuredPaceTest, SaysNothingOfOtherWork) {
  iterations(0, {1.0, 1.0});
  for (const auto& [setting, what] :
       {std::pair("train.micro_batch=2", "train.micro_batch"),
        {"model.kernels=fastest", "model.kernels"},
        {"train.schedule=[d_real, g]", "train.schedule"},
        {"train.strategy={kind: local, workers: 1, steps: 2}", "train.strategy"},
        {"actors.replica.threads=2", "actors.replica.threads"}}) {
    const auto other = read(setting);
    ASSERT_FALSE(other.ok()) << setting;
    EXPECT_THAT(other.error().message, HasSubstr(fmt::format("trained with another {},", what)));
  }
  EXPECT_TRUE(read("train.micro_batches=16").ok());
}

TEST_F(MeasuredPaceTest, NeedsTwoIterations) {
  iterations(0, {1.0});
  EXPECT_THAT(read().error().message, HasSubstr("tells of no two iterations"));
}

}  // namespace
}  // namespace troupe::launch
