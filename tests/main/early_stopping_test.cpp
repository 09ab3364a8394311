// Runs that train.stop ends: after the same step on every venue, whatever happened before.

#include <gmock/gmock.h>

#include <csignal>
#include <sstream>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// No epoch falls by so much, so that training ends with the epoch that is this many behind the
// first.
Words ended_by(int patience, const std::string& metric = "d") {
  return {"--set", "train.epochs=1000", "--set",
          fmt::format("train.stop={{metric: {}, min_delta: 1e6, patience: {}}}", metric, patience)};
}

class EarlyStopping : public ClusterRun {
 protected:
  static void expect_ended_at(const JsonValue& summary, std::uint64_t iterations) {
    EXPECT_EQ(summary["iterations"].integer(), iterations);
    EXPECT_EQ(summary["steps"].integer(), 4 * iterations);
    EXPECT_FALSE(summary["stopped"].truth());
    EXPECT_THAT(summary["ended_early"].text(), HasSubstr("has not fallen by more than 1e+06 for"));
  }
};

TEST_F(EarlyStopping, EndsOneProcessAndSeveralAfterTheSameStep) {
  const JsonValue alone =
      summary_of("alone", ended_by(2) + Words{"--set", "actors.replica.count=1"});
  expect_ended_at(alone, 33);
  EXPECT_THAT(read_text(path("alone/log.txt")),
              HasSubstr("training ends after iteration 33: the loss of all terms of the "
                        "discriminator has not fallen by more than 1e+06 for 2 epochs"));
  for (const char* workers : {"1", "3"}) {
    const JsonValue summary = summary_of(workers, ended_by(2) + Words{"--workers", workers});
    expect_ended_at(summary, 33);
    EXPECT_EQ(summary["state_hash"].text(), alone["state_hash"].text()) << workers;
  }
}

TEST_F(EarlyStopping, EndsARunThatLostAMemberAfterTheSameStep) {
  const JsonValue alone = summary_of("alone", ended_by(40));
  expect_ended_at(alone, 451);
  Process process(command(run_words("a", ended_by(40) + Words{"--workers", "2", "--json"})));
  wait_until_training(process);
  ::kill(member(1), SIGKILL);
  const ProcessEnd end = process.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  expect_ended_at(last_line(end), 451);
  EXPECT_EQ(last_line(end)["state_hash"].text(), alone["state_hash"].text());
}

TEST_F(EarlyStopping, IsKeptOverResume) {
  const std::string whole = hash_of("whole", ended_by(2, "g/ecal"));
  // In the midst of the second and of the third epoch.
  run("a", ended_by(2, "g/ecal") + Words{"--set", "train.iterations=15"});
  EXPECT_EQ(resumed("a", {"--set", "train.iterations=30"})["iterations"].integer(), 30u);
  const JsonValue ended = resumed("a", {"--set", "train.iterations=1000"});
  expect_ended_at(ended, 33);
  EXPECT_EQ(ended["state_hash"].text(), whole);
  // There is nothing more to do, until more patience is asked for.
  EXPECT_EQ(resumed("a")["state_hash"].text(), whole);
  EXPECT_THAT(read_text(path("a/log.txt")), HasSubstr("nothing to train: the loss ecal of the"));
  expect_ended_at(resumed("a", {"--set", "train.stop.patience=3"}), 44);
}

TEST_F(EarlyStopping, EndsWhenTheTargetIsReached) {
  const JsonValue summary =
      summary_of("a", {"--set", "train.epochs=5", "--set", "train.stop={metric: d, target: 1e9}"});
  EXPECT_EQ(summary["iterations"].integer(), 11u);
  EXPECT_THAT(summary["ended_early"].text(), HasSubstr("train.stop.target"));
}

// No validation comes nearer by so much. The state after the epoch that is `patience` behind the
// first ends training, with the iteration that follows it.
Words ended_by_figure(int patience, const std::string& figure = "merit") {
  return ended_by(patience, "validator/" + figure) +
         Words{"--set", "actors.validator={every: 1 epoch, events: 20}"};
}

void expect_ended_by_figure(const JsonValue& summary, std::uint64_t iterations) {
  EXPECT_EQ(summary["iterations"].integer(), iterations);
  EXPECT_EQ(summary["steps"].integer(), 4 * iterations);
  EXPECT_THAT(summary["ended_early"].text(),
              HasSubstr("has not come nearer to its ideal by more than 1e+06 for"));
}

TEST_F(EarlyStopping, ByAFigureEndsEveryVenueAfterTheSameStep) {
  const JsonValue alone =
      summary_of("alone", ended_by_figure(2) + Words{"--set", "actors.replica.count=1"});
  expect_ended_by_figure(alone, 34);
  EXPECT_THAT(read_text(path("alone/log.txt")),
              HasSubstr("training ends after iteration 34: the validator's merit has not come "
                        "nearer to its ideal by more than 1e+06 for 2 validations"));
  for (const char* workers : {"1", "3"}) {
    const JsonValue summary = summary_of(workers, ended_by_figure(2) + Words{"--workers", workers});
    expect_ended_by_figure(summary, 34);
    EXPECT_EQ(summary["state_hash"].text(), alone["state_hash"].text()) << workers;
  }
}

// Not that by which the best state is chosen.
TEST_F(EarlyStopping, ByAnotherFigureThanThatOfTheBestState) {
  const JsonValue summary = summary_of("a", ended_by_figure(1, "sampling_fraction"));
  expect_ended_by_figure(summary, 23);
  EXPECT_THAT(summary["ended_early"].text(), HasSubstr("the validator's sampling_fraction"));
  EXPECT_THAT(read_text(path("a/checkpoints/best.json")), HasSubstr("\"merit\""));
}

// The leader, whose header has the figure, and the head, whose Validator finds it.
TEST_F(EarlyStopping, ByAFigureEndsARunThatLostItsLeaderAndItsHeadAfterTheSameStep) {
  const JsonValue alone = summary_of("alone", ended_by_figure(40));
  expect_ended_by_figure(alone, 452);
  Process process(command(run_words("a", ended_by_figure(40) + Words{"--workers", "3", "--json"})));
  wait_until_training(process);
  ::kill(member(0), SIGKILL);
  wait_until_training(process, steps() + 40);
  replace_head(process);
  wait_until_training(process, steps() + 40);
  replace_head(process);
  const ProcessEnd end = process.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  expect_ended_by_figure(last_line(end), 452);
  EXPECT_EQ(last_line(end)["state_hash"].text(), alone["state_hash"].text());
}

TEST_F(EarlyStopping, ByAFigureIsKeptOverResume) {
  const std::string whole = hash_of("whole", ended_by_figure(2));
  // In the midst of the second epoch; where a figure is not known yet; and two iterations later.
  run("a", ended_by_figure(2) + Words{"--set", "train.iterations=15"});
  for (const char* iterations : {"22", "24"}) {
    const auto set = fmt::format("train.iterations={}", iterations);
    EXPECT_EQ(fmt::to_string(resumed("a", {"--set", set})["iterations"].integer()), iterations);
  }
  const JsonValue ended = resumed("a", {"--set", "train.iterations=1000", "--workers", "2"});
  expect_ended_by_figure(ended, 34);
  EXPECT_EQ(ended["state_hash"].text(), whole);
  EXPECT_EQ(resumed("a")["state_hash"].text(), whole);
  expect_ended_by_figure(resumed("a", {"--set", "train.stop.patience=3"}), 45);
}

TEST_F(EarlyStopping, ByAFigureEndsARunThatWasKilledAndResumedAfterTheSameStep) {
  const JsonValue whole = summary_of("whole", ended_by_figure(40));
  Process process(command(run_words("a", ended_by_figure(40))));
  wait_until_training(process, 200);
  process.send(SIGKILL);
  process.wait();
  const JsonValue ended = resumed("a");
  expect_ended_by_figure(ended, 452);
  EXPECT_EQ(ended["state_hash"].text(), whole["state_hash"].text());
}

TEST_F(EarlyStopping, ChangesNothingOfTheStepsBeforeTheEnd) {
  const auto losses = [&](const std::string& name) {
    std::vector<std::string> all;
    std::istringstream lines(read_text(path(name + "/metrics.jsonl")));
    for (std::string line; std::getline(lines, line);) {
      const std::size_t begin = line.find("\"losses\":{");
      if (begin == std::string::npos || line.find("\"kind\":\"step\"") == std::string::npos)
        continue;
      all.push_back(line.substr(begin, line.find('}', begin) - begin));
    }
    return all;
  };
  run("a", ended_by(1));
  run("b", {"--set", "train.epochs=2"});
  EXPECT_EQ(losses("a").size(), 88u);
  EXPECT_EQ(losses("a"), losses("b"));
}

}  // namespace
}  // namespace troupe
