// Forecasts of `troupe plan`, measured here or taken from an earlier run.

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "tests/main/pool_run.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPools =
    "cluster.pools=[{name: hpc, launcher: slurm, most: 4, price_per_node_hour: 0.5, starts_in: "
    "50 s}, {name: spare, launcher: command, most: 2, speed: 2, start: a, stop: b}]";

class Plan : public PoolRun {
 protected:
  ProcessEnd plan(const Words& more) const {
    return call(Words{"plan", path("toy.yaml")} + more, {.folder = folder_.path()});
  }
};

TEST_F(Plan, MeasuresHereForecastsAndLeavesNothingButData) {
  const Words pools{"--set", kPools, "--set", "train.epochs=1000", "--iterations", "5"};
  const ProcessEnd end = plan(pools);
  ASSERT_EQ(end.exit_code, 0) << end.err;
  for (const auto& entry : std::filesystem::directory_iterator(path("runs"))) {
    EXPECT_EQ(entry.path().filename(), "data");
  }
  EXPECT_THAT(end.out, AllOf(HasSubstr("measured: 5 iterations of 2 workers, "),
                             HasSubstr("the run: 11000 iterations of 16 events\n"),
                             HasSubstr("4 of hpc, 2 of spare")));
  EXPECT_THAT(end.out,
              AllOf(HasSubstr("  a worker of spare is 2 times as fast as the one measured\n"),
                    HasSubstr("  a node of hpc starts in 5 s\n"),
                    HasSubstr("  a node of spare costs nothing\n"),
                    Not(HasSubstr("a node of hpc costs nothing"))));

  const JsonValue object = last_line(plan(pools + Words{"--json"}));
  EXPECT_EQ(object["iterations"].integer(), 11000);
  EXPECT_EQ(object["measured"]["iteration_seconds"].list().size(), 5);
  EXPECT_GT(object["measured"]["ring_bytes_per_second"].number(), 0.0);
  int fastest = 0, recommended = 0;
  for (const JsonValue& line : object["lines"].list()) {
    fastest += line["fastest"].truth() ? 1 : 0;
    recommended += line["recommended"].truth() ? 1 : 0;
    EXPECT_LE(line["at_best"]["seconds"].number(), line["expected"]["seconds"].number());
    EXPECT_GE(line["at_worst"]["seconds"].number(), line["expected"]["seconds"].number());
    EXPECT_GT(line["nodes"]["hpc"].integer() + line["nodes"]["spare"].integer(), 0);
  }
  EXPECT_EQ(fastest, 1);
  EXPECT_EQ(recommended, 1);
}

TEST_F(Plan, WithoutPoolsIsForNodesLikeThisMachine) {
  const ProcessEnd end = plan({"--iterations", "2"});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("\n1 of node "), HasSubstr("\n2 of node ")));
}

TEST_F(Plan, WithWorkersCountsThem) {
  const JsonValue object =
      last_line(plan({"--iterations", "2", "--workers", "2", "--set", kPools, "--json"}));
  // Two workers in each of two members.
  EXPECT_EQ(object["lines"].list().front()["workers"].integer(), 4);
}

TEST_F(Plan, WithADeadlineThatNobodyKeepsSaysSo) {
  const ProcessEnd end =
      plan({"--iterations", "2", "--set", kPools, "--set", "train.epochs=1000000", "--set",
            "cluster.burst={finish_within: 1 s}"});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("which is too late"));
}

TEST_F(Plan, OfAnEarlierRunTakesItsPaceAndThatOfItsPools) {
  Process all(command(endless(cloud_pool(1, ", price_per_node_hour: 3"))));
  ASSERT_TRUE(wait_until(all, "own", 1, "running")) << log();
  end(all);
  const Words of_run{"--run", path("a")};
  const ProcessEnd told = plan(of_run + cloud_pool(1, ", price_per_node_hour: 3"));
  ASSERT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.out, Not(HasSubstr("a node of own starts in"))) << "that was measured";
  EXPECT_THAT(told.out, Not(HasSubstr("a node of own costs nothing")));
}

TEST_F(Plan, TellsSmallSumsAndPricesOfCommands) {
  const ProcessEnd end = plan({"--iterations", "2", "--set",
                               "cluster.pools=[{name: own, launcher: command, most: 1, start: a, "
                               "stop: b, price: 'echo 0.0001'}]",
                               "--json"});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const double cost = last_line(end)["lines"].list().front()["expected"]["cost"].number();
  EXPECT_GT(cost, 0.0);
  EXPECT_LT(cost, 0.01);
}

TEST_F(Plan, RefusesWhatTellsNothing) {
  expect_refused(plan({"--run", path("nowhere")}), 3, {"nowhere/topology.yaml"});
  expect_refused(plan({"--run", path("nowhere"), "--iterations", "3"}), 2,
                 {"leave out --iterations"});
  run("a", until_iteration(1));
  expect_refused(plan({"--run", path("a")}), 4,
                 {"a/metrics.jsonl: tells of no two iterations that the same members made"});
  expect_refused(plan({"--run", path("a"), "--set", "train.micro_batch=2"}), 2,
                 {"a trained with another train.micro_batch", "without --run"});
  expect_refused(plan({"--set",
                       "cluster.pools=[{name: own, launcher: command, start: a, stop: b, "
                       "price: 'echo 0,45'}]"}),
                 2, {"pool own: `echo 0,45` prints no price, such as 0.45"});
  EXPECT_FALSE(std::filesystem::exists(path("runs"))) << "nothing is trained before";
}

}  // namespace
}  // namespace troupe
