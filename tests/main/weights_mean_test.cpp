// Runs that keep a mean of the generator's weights beside them.

#include <gmock/gmock.h>

#include <sstream>

#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

const Words kMean{"--set", "train.mean=0.9"};

class WeightsMean : public ClusterRun {
 protected:
  // The losses of all steps, as metrics.jsonl has them.
  std::vector<std::string> losses(const std::string& name) const {
    std::vector<std::string> all;
    std::istringstream lines(read_text(path(name + "/metrics.jsonl")));
    for (std::string line; std::getline(lines, line);) {
      const std::size_t begin = line.find("\"losses\":{");
      if (begin == std::string::npos || line.find("\"kind\":\"step\"") == std::string::npos) {
        continue;
      }
      all.push_back(line.substr(begin, line.find('}', begin) - begin));
    }
    return all;
  }
  std::vector<float> showers(const std::string& from, const Words& more = {}) const {
    const ProcessEnd end = call(Words{"generate", from, "--out", path("g.h5"), "--energy", "60",
                                      "--events", "20", "--force"} +
                                more);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return rows_of(path("g.h5"), "ECAL", 20, 64);
  }
};

TEST_F(WeightsMean, ChangesNoStepAndHasOneHashOverProcessesKillsAndResume) {
  const std::string whole = hash_of("undisturbed", kMean + until_iteration(15));
  EXPECT_NE(hash_of("without", until_iteration(15)), whole) << "the mean is of the state";
  EXPECT_EQ(losses("undisturbed").size(), 60u);
  EXPECT_EQ(losses("undisturbed"), losses("without"));
  for (const char* workers : {"1", "3"}) {
    EXPECT_EQ(hash_of(workers, kMean + until_iteration(15) + Words{"--workers", workers}), whole);
  }
  hash_of("b", kMean + until_iteration(7));
  EXPECT_EQ(resumed("b", until_iteration(15))["state_hash"].text(), whole);
  Process process(command(run_words("a", kMean + kEndlessRun + Words{"--workers", "2"})));
  wait_until_training(process);
  ::kill(member(1), SIGKILL);
  wait_until_training(process, steps() + 20);
  stop_and_expect_whole(process, kMean);
}

TEST_F(WeightsMean, IsWhatLeavesUnlessRawWeightsAreAskedFor) {
  run("a", kMean + until_iteration(15));
  run("without", until_iteration(15));
  const auto told = [&] { return call({"data", "info", path("g.h5")}).out; };
  const auto mean = showers(path("a"));
  EXPECT_THAT(told(), HasSubstr("their exponential mean, decay 0.9"));
  const auto raw = showers(path("a"), {"--raw"});
  EXPECT_THAT(told(), testing::Not(HasSubstr("exponential mean")));
  EXPECT_NE(mean, raw);
  EXPECT_EQ(raw, showers(path("without")));
  EXPECT_EQ(raw, showers(path("without"), {"--raw"}));
  // Out and in again.
  const auto way_through_keras = [&](const Words& more) {
    const ProcessEnd out =
        call(Words{"export", path("a"), "--keras", path("w.h5"), "--force"} + more);
    EXPECT_EQ(out.exit_code, 0) << out.err;
    const ProcessEnd in = call(Words{"import", path("w.h5"), "--model", path("toy.yaml"), "--out",
                                     path("i.h5"), "--force"} +
                               kMean);
    EXPECT_EQ(in.exit_code, 0) << in.err;
    return showers(path("i.h5"));
  };
  EXPECT_EQ(way_through_keras({}), mean);
  EXPECT_THAT(read_text(path("w.h5.md")), HasSubstr("their exponential mean, decay 0.9"));
  EXPECT_EQ(way_through_keras({"--raw"}), raw);
  EXPECT_THAT(read_text(path("w.h5.md")), testing::Not(HasSubstr("exponential mean")));
}

// The toy updates its generator twice in an iteration.
TEST_F(WeightsMean, IsToldOfByInspect) {
  run("a", kMean + until_iteration(3));
  run("without", until_iteration(3));
  const auto json = [&](const char* name) {
    return last_line(call({"inspect", path(name), "--json"}));
  };
  EXPECT_EQ(json("a")["mean_updates"].integer(), 6);
  EXPECT_TRUE(json("without")["mean_updates"].is_null());
  EXPECT_THAT(call({"inspect", path("a")}).out,
              HasSubstr("\n  mean of the weights: of 6 updates\n"));
  EXPECT_THAT(call({"inspect", path("without")}).out, testing::Not(HasSubstr("mean of")));
}

TEST_F(WeightsMean, IsWhatIsValidated) {
  const Words validated =
      until_iteration(15) + Words{"--set", "actors.validator={every: 5 iterations, events: 20}"};
  run("a", kMean + validated);
  run("without", validated);
  const auto best = [&](const char* name) {
    return read_text(path(name) + "/checkpoints/best.json");
  };
  EXPECT_THAT(best("a"), HasSubstr("\"distance\""));
  EXPECT_NE(best("a"), best("without"));
}

TEST_F(WeightsMean, CannotBeAddedToARunOrTakenAway) {
  run("a", kMean + until_iteration(2));
  run("without", until_iteration(2));
  expect_refused(call(Words{"run", "--resume", path("without")} + kMean), 3, {"train.mean"});
  expect_refused(call({"run", "--resume", path("a"), "--set", "train.mean=0.5"}), 3,
                 {"train.mean.decay: was 0.9, is now 0.5"});
}

TEST_F(WeightsMean, OfLogicalWorkersHasOneHashToo) {
  const Words local = kMean + Words{"--set", "train.strategy={kind: local, workers: 4, steps: 2}"};
  const std::string alone = hash_of("alone", local);
  EXPECT_EQ(hash_of("several", local + Words{"--workers", "3"}), alone);
  EXPECT_NE(showers(path("alone")), showers(path("alone"), {"--raw"}));
}

}  // namespace
}  // namespace troupe
