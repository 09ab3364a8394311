// Runs that are stopped, killed or asked for a checkpoint, and go on to the same bits.

#include <fcntl.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

// Without an end: a test stops it at a step, not at a time, whatever else the machine does.
const Words kEndless{"--set", "train.epochs=1000000", "--set",
                     "actors.checkpointer={every: 3 iterations, keep: 2}"};

const Words kValidating{"--set", "actors.validator={every: 1 epoch, events: 10}", "--set",
                        "actors.checkpointer={every: 1 epoch, keep: 3}"};

class Interrupted : public ToyRun {
 protected:
  std::vector<std::uint64_t> metric_steps(const std::string& name) const {
    std::vector<std::uint64_t> steps;
    for (const JsonValue& line : json_lines(path(name + "/metrics.jsonl"))) {
      if (line["kind"].text() == "step") steps.push_back(line["step"].integer());
    }
    return steps;
  }
};

TEST_F(Interrupted, RunStoppedAtAnyStepGoesOnToTheSameHashAndMetrics) {
  for (std::uint32_t stop = 0; stop < 4; ++stop) {
    const ProcessEnd end = interrupt(stop % 2 == 0 ? SIGTERM : SIGINT, stop, 60, kEndless);
    ASSERT_EQ(end.exit_code, stop % 2 == 0 ? 143 : 130) << end.err;
    EXPECT_THAT(end.err, HasSubstr("--resume " + path("a")));
    const JsonValue summary = parse_json(read_text(path("a/summary.json")));
    EXPECT_TRUE(summary["stopped"].truth());
    EXPECT_EQ(summary["steps"].integer(), newest_step("a"));
  }
  const std::uint64_t iterations = newest_step("a") / 4 + 5;
  const JsonValue whole = summary_of("whole", until_iteration(iterations));
  const JsonValue parts = resumed("a", until_iteration(iterations));
  EXPECT_EQ(parts["state_hash"].text(), whole["state_hash"].text());
  EXPECT_EQ(parts["ledger"]["events"].integer(), whole["ledger"]["events"].integer());
  EXPECT_EQ(parts["ledger"]["sum"].text(), whole["ledger"]["sum"].text());
  const auto steps = metric_steps("a");
  ASSERT_EQ(steps.size(), iterations * 4);
  for (std::size_t i = 0; i < steps.size(); ++i) ASSERT_EQ(steps[i], i);
}

// The lines of the last moment before it died may be missing, none may come twice.
TEST_F(Interrupted, KilledRunGoesOnToTheSameHash) {
  std::uint64_t resumed_at = 0;
  for (std::uint32_t kill = 0; kill < 4; ++kill) {
    ASSERT_EQ(interrupt(SIGKILL, 10 + kill, 60, kEndless).signal, SIGKILL);
    resumed_at = newest_step("a");
  }
  const std::uint64_t iterations = newest_step("a") / 4 + 5;
  const std::string whole = hash_of("whole", until_iteration(iterations));
  EXPECT_EQ(resumed("a", until_iteration(iterations))["state_hash"].text(), whole);
  const auto steps = metric_steps("a");
  for (std::size_t i = 1; i < steps.size(); ++i) ASSERT_GT(steps[i], steps[i - 1]);
  ASSERT_GE(steps.size(), iterations * 4 - resumed_at);
  const auto tail = std::find(steps.begin(), steps.end(), resumed_at);
  EXPECT_EQ(static_cast<std::uint64_t>(steps.end() - tail), iterations * 4 - resumed_at);
  EXPECT_EQ(steps.back(), iterations * 4 - 1);
}

TEST_F(Interrupted, ResumeWithOtherReplicasThreadsAndEpochsGivesTheSameHash) {
  const std::string whole = hash_of("whole", {"--set", "train.epochs=3"});
  run("a", {"--set", "train.epochs=1"});
  EXPECT_EQ(resumed("a", {"--set", "train.epochs=2", "--set", "actors.replica.count=1"})["epochs"]
                .integer(),
            2);
  const Words more{"--set", "train.epochs=3", "--set", "actors.replica={count: 3, threads: 2}"};
  EXPECT_EQ(resumed("a", more)["state_hash"].text(), whole);
}

TEST_F(Interrupted, ResumeOfAFinishedRunChangesNothing) {
  const std::string hash = hash_of("a", kValidating);
  const std::string metrics = read_text(path("a/metrics.jsonl"));
  const std::string best = read_text(path("a/checkpoints/best.json"));
  const auto files = checkpoints("a");
  const JsonValue again = resumed("a");
  EXPECT_EQ(again["state_hash"].text(), hash);
  EXPECT_FALSE(again["validation"]["rows"].list().empty());
  EXPECT_EQ(metric_steps("a").size(), 88);
  EXPECT_EQ(read_text(path("a/metrics.jsonl")), metrics);
  EXPECT_EQ(read_text(path("a/checkpoints/best.json")), best);
  EXPECT_EQ(checkpoints("a"), files);
  EXPECT_THAT(read_text(path("a/log.txt")), HasSubstr("already at iteration 22 of 22"));
}

TEST_F(Interrupted, ResumeKeepsWhatWasSaidOfTheStateItGoesOnFrom) {
  run("a", kValidating + Words{"--set", "train.epochs=1"});
  resumed("a", {"--set", "train.epochs=2"});
  std::vector<std::string> said;
  for (const JsonValue& line : json_lines(path("a/metrics.jsonl"))) {
    const std::string kind = line["kind"].text();
    // Numbers that actors tell come when they come.
    if (line["step"].integer() == 44 && kind != "samples") said.push_back(kind);
  }
  EXPECT_THAT(said,
              testing::UnorderedElementsAre("checkpoint", "validation", "showers", "test_losses",
                                            "test_losses", "test_losses", "run", "step"));
}

// The newest file is of a later step than any the resumed run comes to.
TEST_F(Interrupted, RunStoppedAfterAFallBackKeepsWhatItSaved) {
  run("a", {"--set", "train.epochs=1", "--set", "actors.checkpointer={every: none, keep: 1}"});
  const std::string first = checkpoint("a", 0);
  std::filesystem::copy(first, path("first.h5"));
  resumed("a", {"--set", "train.epochs=40"});
  const std::string newest = checkpoint("a", 0);
  std::filesystem::resize_file(newest, 1000);
  std::filesystem::copy(path("first.h5"), first);
  Process process(command({"run", "--resume", path("a"), "--set", "train.epochs=1000000"}));
  const auto training = [&] {
    const std::string metrics = read_text(path("a/metrics.jsonl"));
    return read_text(path("a/nodes.json")).find("running") != std::string::npos &&
           std::count(metrics.begin(), metrics.end(), '\n') > 50;
  };
  process.wait_until([&] { return training(); });
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().exit_code, 143);
  ASSERT_EQ(checkpoints("a").size(), 1);
  const JsonValue summary = parse_json(read_text(path("a/summary.json")));
  EXPECT_EQ(summary["steps"].integer(), newest_step("a"));
  EXPECT_LT(checkpoint("a", 0), newest);
  EXPECT_TRUE(std::filesystem::exists(newest + ".unreadable"));
}

TEST_F(Interrupted, LinesThatMetricsLackAreCounted) {
  run("a", {"--set", "links=[{from: replica, to: monitor, credits: 1}]"});
  const std::string log = read_text(path("a/log.txt"));
  const std::size_t steps = metric_steps("a").size();
  ASSERT_LE(steps, 88);
  if (steps == 88) {
    EXPECT_THAT(log, Not(HasSubstr("lacks")));
  } else {
    EXPECT_THAT(log, HasSubstr(fmt::format("metrics.jsonl lacks {} lines", 88 - steps)));
  }
}

TEST_F(Interrupted, ResumeWithAnotherSeedModelOrBatchIsRefusedNamingTheField) {
  run("a");
  const std::string before = read_text(path("a/topology.yaml"));
  const auto refused = [&](const std::string& setting, const std::string& field) {
    const ProcessEnd end = call({"run", "--resume", path("a"), "--set", setting});
    expect_refused(end, 3, {path("a"), field});
  };
  refused("train.seed=2", "train.seed: was 1, is now 2");
  refused("model.discriminator.layers.3={dropout: 0.5}", "model.discriminator.layers.3");
  refused("train.micro_batch=8", "train.micro_batch: was 4, is now 8");
  refused("train.schedule=[d_real, g]", "train.schedule");
  refused("data.test_one_in=5", "data.test_one_in");
  EXPECT_EQ(read_text(path("a/topology.yaml")), before);
}

// The workers are part of what it trains; no checkpoint is to blame.
TEST_F(Interrupted, WeakScalingGoesOnWithAsManyWorkersOnly) {
  run("a", {"--set", "train.scaling=weak"});
  const auto before = checkpoints("a");
  const ProcessEnd end = call({"run", "--resume", path("a"), "--workers", "2"});
  expect_refused(end, 3,
                 {"train.scaling: weak was begun with 1 worker and cannot go on with 2; resume "
                  "with --workers 1"});
  EXPECT_THAT(end.err, Not(HasSubstr("trying the next older checkpoint")));
  EXPECT_EQ(checkpoints("a"), before);
  resumed("a", {"--set", "train.epochs=3"});
}

TEST_F(Interrupted, ResumeWithoutARunIsAUsageError) {
  expect_refused(call({"run", "--resume", path("none")}), 2, {path("none"), "is no run's folder"});
}

TEST_F(Interrupted, OtherDataInTheSameFileIsRefused) {
  run("a");
  ToyData other(200);
  other.cells[0] += 0.125f;
  other.write(path("toy.h5"));
  expect_refused(call({"run", "--resume", path("a")}), 4, {"another dataset"});
}

// Its first checkpoint may be hours away.
TEST_F(Interrupted, RunKilledBeforeItsFirstCheckpointGoesOnToTheSameHash) {
  const Words never{"--set", "actors.checkpointer.every=none"};
  Process process(command(run_words("a", kEndless) + never));
  process.wait_until([&] { return !read_text(path("a/metrics.jsonl")).empty(); });
  process.send(SIGKILL);
  ASSERT_EQ(process.wait().signal, SIGKILL);
  ASSERT_TRUE(checkpoints("a").empty());
  expect_refused(run("a"), 2, {"holds a run already", "--resume"});
  const std::string whole = hash_of("whole", until_iteration(7));
  EXPECT_EQ(resumed("a", until_iteration(7))["state_hash"].text(), whole);
  EXPECT_THAT(read_text(path("a/log.txt")), HasSubstr("from the initial state"));
  const auto steps = metric_steps("a");
  ASSERT_EQ(steps.size(), 28);
  for (std::size_t i = 0; i < steps.size(); ++i) ASSERT_EQ(steps[i], i);
}

TEST_F(Interrupted, RunWhoseCheckpointsAreGoneDoesNotBeginAgain) {
  run("a");
  const std::string metrics = read_text(path("a/metrics.jsonl"));
  std::filesystem::rename(path("a/checkpoints"), path("elsewhere"));
  std::filesystem::create_directory(path("a/checkpoints"));
  expect_refused(call({"run", "--resume", path("a")}), 4,
                 {path("a/checkpoints"), "metrics.jsonl", "step-000000000088.h5"});
  EXPECT_EQ(read_text(path("a/metrics.jsonl")), metrics);
}

TEST_F(Interrupted, ResumeSweepsUpWhatAnEndedWriteLeftAndTheOldSummary) {
  run("a");
  write_text(path("a/checkpoints/step-000000001060.h5.part"), "torn");
  write_text(path("a/metrics.jsonl.part"), "torn");
  Process process(command({"run", "--resume", path("a"), "--set", "train.epochs=1000000"}));
  wait_for_checkpoint(process, "a", 100);
  EXPECT_FALSE(std::filesystem::exists(path("a/checkpoints/step-000000001060.h5.part")));
  EXPECT_FALSE(std::filesystem::exists(path("a/metrics.jsonl.part")));
  EXPECT_FALSE(std::filesystem::exists(path("a/summary.json")));
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().exit_code, 143);
  EXPECT_TRUE(std::filesystem::exists(path("a/summary.json")));
}

TEST_F(Interrupted, NewRunLeavesWhatIsInItsFolderAlone) {
  std::filesystem::create_directories(path("b/checkpoints"));
  write_text(path("b/film.part"), "mine");
  write_text(path("b/checkpoints/notes.part"), "mine");
  run("b");
  EXPECT_EQ(read_text(path("b/film.part")), "mine");
  EXPECT_EQ(read_text(path("b/checkpoints/notes.part")), "mine");
}

TEST_F(Interrupted, NewRunIsNotMixedWithWhatIsLeftOfAnother) {
  run("a");
  std::filesystem::remove(path("a/topology.yaml"));
  expect_refused(call(run_words("a", {})), 2,
                 {path("a"), "checkpoints or metrics of a run", "--out"});
  std::filesystem::remove_all(path("a/checkpoints"));
  expect_refused(call(run_words("a", {})), 2, {path("a"), "checkpoints or metrics of a run"});
  std::filesystem::remove(path("a/metrics.jsonl"));
  EXPECT_EQ(run("a").exit_code, 0);
}

TEST_F(Interrupted, ResumeSaysWhatTheMetricsLack) {
  run("a");
  const std::string metrics = read_text(path("a/metrics.jsonl"));
  const auto resumed_with = [&](const std::string& text) {
    write_text(path("a/metrics.jsonl"), text);
    const ProcessEnd end = call({"run", "--resume", path("a")});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return end.err;
  };
  EXPECT_THAT(resumed_with(metrics), Not(HasSubstr("metrics.jsonl")));
  const std::string damaged = "garbage\n" + metrics;
  EXPECT_THAT(resumed_with(damaged), HasSubstr("1 lines cannot be read and are left out"));
  EXPECT_EQ(read_text(path("a/metrics.jsonl.unreadable")), damaged);
  const std::size_t first = metrics.find("\n{\"kind\":\"step\"") + 1;
  const std::size_t second = metrics.find('\n', first) + 1;
  EXPECT_THAT(resumed_with(metrics.substr(0, first) + metrics.substr(second)),
              HasSubstr("tells of 87 of the 88 steps so far"));
}

TEST_F(Interrupted, TopologyOfAResumedRunStillSaysWhereItsValuesCameFrom) {
  run("a", {"--seed", "5"});
  const std::string before = read_text(path("a/topology.yaml"));
  resumed("a");
  EXPECT_EQ(read_text(path("a/topology.yaml")), before);
  resumed("a", {"--set", "train.epochs=3"});
  const std::string after = read_text(path("a/topology.yaml"));
  EXPECT_THAT(after, HasSubstr("epochs: 3  # --set train.epochs=3\n"));
  EXPECT_THAT(after, HasSubstr("seed: 5  # --set train.seed=5\n"));
  EXPECT_THAT(after, Not(HasSubstr(path("a/topology.yaml"))));
}

// As when the terminal of a run is closed.
TEST_F(Interrupted, HangUpSavesTheLastStateAsAStopDoes) {
  ASSERT_EQ(interrupt(SIGHUP, 20, 60, kEndless).exit_code, 129);
  const JsonValue summary = parse_json(read_text(path("a/summary.json")));
  EXPECT_TRUE(summary["stopped"].truth());
  EXPECT_EQ(summary["steps"].integer(), newest_step("a"));
}

TEST_F(Interrupted, RunUnderNohupOutlivesItsTerminal) {
  Words words = command(run_words("a", kEndless));
  words.insert(words.begin(), "/usr/bin/nohup");
  Process process(words);
  wait_for_checkpoint(process, "a", 1);
  process.send(SIGHUP);
  wait_for_checkpoint(process, "a", newest_step("a") + 100);
  ASSERT_TRUE(process.running());
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().exit_code, 143);
}

// Both wait for the process when it goes on, so that it has no time to end by the first.
TEST_F(Interrupted, SignalsThatArriveTogetherAreOneRequestAndTheStateIsSaved) {
  Process process(command(run_words("a", kEndless)));
  wait_for_checkpoint(process, "a", 12);
  for (const int number : {SIGSTOP, SIGINT, SIGTERM, SIGCONT}) process.send(number);
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 130) << end.err;
  EXPECT_EQ(parse_json(read_text(path("a/summary.json")))["steps"].integer(), newest_step("a"));
}

TEST_F(Interrupted, FolderThatIsRemovedInMidRunIsMadeAgainAndTheRunGoesOnToTheSameHash) {
  Process process(command(run_words("a", kEndless)));
  wait_for_checkpoint(process, "a", 12);
  std::filesystem::rename(path("a"), path("away"));
  wait_for_checkpoint(process, "a", 16);
  process.send(SIGTERM);
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 143) << end.err;
  EXPECT_THAT(end.err, HasSubstr("was moved to " + path("away")));
  EXPECT_EQ(metric_steps("a").size(), newest_step("a")) << "the lines from before it was moved too";
  const std::uint64_t iterations = newest_step("a") / 4 + 5;
  const std::string whole = hash_of("whole", until_iteration(iterations));
  EXPECT_EQ(resumed("a", until_iteration(iterations))["state_hash"].text(), whole);
}

// Nothing can be made below a file.
TEST_F(Interrupted, StateThatTheFolderDoesNotTakeIsSavedElsewhereAndGoesOnToTheSameHash) {
  std::filesystem::create_directories(path("deep"));
  Process process(command(run_words("deep/a", kEndless)), {.folder = folder_.path()});
  wait_for_checkpoint(process, "deep/a", 12);
  // In one step: the run makes its folder again where there is none.
  write_text(path("file"), "");
  ASSERT_EQ(
      ::renameat2(AT_FDCWD, path("deep").c_str(), AT_FDCWD, path("file").c_str(), RENAME_EXCHANGE),
      0);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  process.send(SIGTERM);
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 4) << end.err;
  const std::string place = std::filesystem::directory_iterator(path("runs"))->path();
  EXPECT_THAT(end.err, HasSubstr("is saved in runs/"));
  EXPECT_THAT(end.err, HasSubstr("go on with: troupe run --resume runs/"));
  std::filesystem::rename(place, path("b"));
  const std::uint64_t iterations = newest_step("b") / 4 + 5;
  const std::string whole = hash_of("whole", until_iteration(iterations));
  EXPECT_EQ(resumed("b", until_iteration(iterations))["state_hash"].text(), whole);
}

TEST_F(Interrupted, SignalWhileShowersAreMadeEndsAtOnceAndLeavesTheFolderFree) {
  const std::string shipped = TROUPE_SOURCE_DIR "/config/topologies/quickstart.yaml";
  const Words words{"run", shipped, "--set", "data.synthetic.events=10000000", "--out", path("a")};
  for (const auto& [number, code] : {std::pair{SIGTERM, 143}, {SIGINT, 130}, {SIGHUP, 129}}) {
    std::filesystem::remove_all(path("data"));
    Process process(command(words));
    // Made when the showers begin.
    process.wait_until([&] { return std::filesystem::exists(path("data")); });
    process.send(number);
    EXPECT_EQ(process.wait().exit_code, code);
    EXPECT_TRUE(std::filesystem::is_empty(path("data")));
    EXPECT_FALSE(std::filesystem::exists(path("a")));
  }
  EXPECT_EQ(run("a").exit_code, 0);
}

TEST_F(Interrupted, FirstUserSignalWritesACheckpointAndTrainingGoesOn) {
  Words words =
      run_words("a", kEndless) + Words{"--set", "actors.checkpointer={every: none, keep: 1000}"};
  Process process(command(words));
  // A request before training begins is in vain.
  while (process.running() && checkpoints("a").empty()) {
    if (std::filesystem::exists(path("a/log.txt"))) process.send(SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ASSERT_TRUE(process.running());
  const std::string written = checkpoint("a", 0);
  // The last line may be half there while it is written.
  const auto lines = [&] { return std::ranges::count(read_text(path("a/metrics.jsonl")), '\n'); };
  const auto before = lines();
  process.wait_until([&] { return lines() >= before + 8; });
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().exit_code, 143);
  EXPECT_EQ(call({"inspect", written}).exit_code, 0);
  EXPECT_GT(checkpoint("a", 0), written);
}

}  // namespace
}  // namespace troupe
