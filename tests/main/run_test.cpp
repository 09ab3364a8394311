// `troupe run` to its end: what it leaves behind, and what the trained bits depend on.

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;

const Words kValidatingEachEpoch{"--set", "actors.validator={every: 1 epoch, events: 20}"};

TEST_F(ToyRun, SummaryFileIsTheObjectThatJsonPrints) {
  const ProcessEnd end = run("a", {"--json"});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(end.out, read_text(path("a/summary.json")));
  const JsonValue summary = last_line(end);
  EXPECT_EQ(summary["iterations"].integer(), 22);
  EXPECT_EQ(summary["epochs"].integer(), 2);
  EXPECT_EQ(summary["state_hash"].text().size(), 32);
  EXPECT_GT(summary["events_per_second"].number(), 0.0);
  EXPECT_GT(summary["peak_memory_bytes"].number(), 1e6);
  EXPECT_EQ(summary["ledger"]["events"].integer(), 22 * 16 * 4);
  EXPECT_EQ(summary["bytes_on_wire"].integer(), 0);
  EXPECT_EQ(summary["failures_survived"].integer(), 0);
  EXPECT_TRUE(summary["error"].is_null());
}

TEST_F(ToyRun, EveryLineOfMetricsIsAnObjectAndEveryStepComesOnce) {
  summary_of("a", kValidatingEachEpoch);
  std::vector<std::uint64_t> steps;
  int validations = 0;
  std::vector<std::uint64_t> written;
  for (const JsonValue& line : json_lines(path("a/metrics.jsonl"))) {
    const std::string kind = line["kind"].text();
    if (kind == "validation") ++validations;
    if (kind == "checkpoint") written.push_back(line["step"].integer());
    if (kind != "step") continue;
    steps.push_back(line["step"].integer());
    EXPECT_EQ(line["iteration"].integer(), steps.back() / 4);
    EXPECT_EQ(line["epoch"].integer(), steps.back() / 44);
    EXPECT_EQ(line["events"].integer(), 16);
    for (const char* name : {"generation", "auxiliary", "ecal"}) line["losses"][name].number();
    for (const char* name : {"load", "compute", "reduce", "apply"}) line["seconds"][name].number();
  }
  ASSERT_EQ(steps.size(), 88);
  for (std::size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i], i);
  EXPECT_EQ(validations, 2);
  // The best may be written behind the last state, which overtakes snapshots.
  EXPECT_THAT(written, Contains(88));
}

TEST_F(ToyRun, FolderHoldsNodesLogAndTheNewestCheckpoints) {
  const JsonValue summary = summary_of("a");
  // The last state does not wait for snapshots before it.
  EXPECT_EQ(checkpoints("a").front(), "step-000000000088.h5");
  EXPECT_THAT(checkpoints("a").size(), AllOf(Ge(2), Le(3)));
  const JsonValue nodes = parse_json(read_text(path("a/nodes.json")));
  ASSERT_EQ(nodes.list().size(), 1);
  const JsonValue& node = nodes.list().front();
  for (const char* field : {"name", "host", "role"}) EXPECT_NE(node[field].text(), "");
  EXPECT_GT(node["pid"].integer(), 0);
  EXPECT_EQ(node["state"].text(), "ended");
  EXPECT_THAT(read_text(path("a/log.txt")), HasSubstr("180 events from 1 files"));
  const ProcessEnd inspected = call({"inspect", checkpoint("a", 0), "--json"});
  EXPECT_EQ(last_line(inspected)["state_hash"].text(), summary["state_hash"].text());
}

TEST_F(ToyRun, ItsTopologyFileRunsAgainToTheSameHash) {
  const std::string hash = hash_of("a", {"--set", "train.learning_rate.g=3e-3", "--seed", "5"});
  const ProcessEnd again = call({"run", path("a/topology.yaml"), "--out", path("b"), "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(last_line(again)["state_hash"].text(), hash);
}

// The smallest model and no data: the least that anybody can try.
TEST_F(ToyRun, ToyTrainsOnMadeShowers) {
  const JsonValue summary =
      summary_of("a", {"--set", "data.train=synthetic", "--set", "data.synthetic.events=200"});
  EXPECT_EQ(summary["iterations"].integer(), 22);
}

TEST_F(ToyRun, TopologyGivenByARelativePathCanBeResumed) {
  const ProcessOptions here{.folder = folder_.path()};
  ASSERT_EQ(call({"run", "toy.yaml", "--out", "a"}, here).exit_code, 0);
  const ProcessEnd more = call({"run", "--resume", "a", "--set", "train.epochs=3"}, here);
  EXPECT_EQ(more.exit_code, 0) << more.err;
}

// The folder as a shell completes its name, and the data of several runs still beside it.
TEST_F(ToyRun, SlashBehindTheFolderChangesNothing) {
  EXPECT_EQ(run("a/").exit_code, 0);
  std::filesystem::remove_all(path("data"));
  const ProcessEnd end = call({"run", "--resume", path("a//"), "--set", "train.epochs=3"});
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_THAT(end.err, HasSubstr("run folder: " + path("a") + "\n"));
  EXPECT_TRUE(std::filesystem::exists(path("data/index")));
  EXPECT_FALSE(std::filesystem::exists(path("a/data")));
}

TEST_F(ToyRun, SummaryThatCannotBeWrittenDoesNotHideHowTheRunEnded) {
  Process process(command(run_words("a", {"--set", "train.epochs=1000000", "--json"})));
  wait_for_checkpoint(process, "a", 20);
  std::filesystem::create_directories(path("a/summary.json/in the way"));
  process.send(SIGTERM);
  const ProcessEnd end = process.wait();
  EXPECT_EQ(end.exit_code, 4);
  EXPECT_THAT(end.err, HasSubstr("cannot replace " + path("a/summary.json")));
  EXPECT_THAT(end.err, HasSubstr("stopped by signal 15"));
  EXPECT_TRUE(last_line(end)["stopped"].truth());
  EXPECT_EQ(parse_json(read_text(path("a/nodes.json"))).list()[0]["state"].text(), "ended");
}

TEST_F(ToyRun, HashDependsOnTheSeedAndNotOnReplicasThreadsOrCredits) {
  const std::string hash = hash_of("a");
  EXPECT_EQ(hash_of("again"), hash);
  EXPECT_EQ(hash_of("one", {"--set", "actors.replica.count=1"}), hash);
  EXPECT_EQ(hash_of("three", {"--set", "actors.replica={count: 3, threads: 2}", "--set",
                              "actors.loader={threads: 2, credits: 1}"}),
            hash);
  EXPECT_EQ(hash_of("small segments", {"--set", "actors.reducer.segment=4KiB"}), hash);
  EXPECT_NE(hash_of("other seed", {"--seed", "2"}), hash);
}

TEST_F(ToyRun, TableComparesDataUntrainedAndTrained) {
  const ProcessEnd end = run("a", kValidatingEachEpoch);
  ASSERT_EQ(end.exit_code, 0) << end.err;
  for (const char* row : {"\ndata ", "\nuntrained ", "\ngenerated "}) {
    EXPECT_THAT(end.out, HasSubstr(row));
  }
  const JsonValue summary = parse_json(read_text(path("a/summary.json")));
  EXPECT_EQ(summary["validation"]["rows"].list().size(), 3);
  EXPECT_THAT(end.err, HasSubstr("iteration 22/22"));
  EXPECT_THAT(end.err, HasSubstr("events/s"));
}

TEST_F(ToyRun, FolderWithARunIsRefusedAndStaysAsItIs) {
  run("a");
  const std::string before = read_text(path("a/metrics.jsonl"));
  expect_refused(run("a", {"--seed", "9"}), 2, {path("a"), "holds a run already", "--resume"});
  EXPECT_EQ(read_text(path("a/metrics.jsonl")), before);
  EXPECT_THAT(read_text(path("a/topology.yaml")), HasSubstr("seed: 1  # "));
}

TEST_F(ToyRun, LiveRunIsLocked) {
  Process live(command(run_words("a", {"--set", "train.epochs=1000000"})));
  wait_for_checkpoint(live, "a", 20);
  EXPECT_EQ(parse_json(read_text(path("a/nodes.json"))).list()[0]["state"].text(), "running");
  expect_refused(call({"run", "--resume", path("a")}), 2, {path("a"), "still going on"});
  expect_refused(run("a"), 2, {path("a"), "still going on"});
  live.send(SIGTERM);
  EXPECT_EQ(live.wait().exit_code, 143);
}

TEST_F(ToyRun, NameOfItsFolderCommandsNoTerminalAndIsOneWordOfTheHint) {
  const std::string name = "my run\x1b[31m";
  Process live(command(run_words(name, {"--set", "train.epochs=1000000"})));
  wait_for_checkpoint(live, name, 20);
  live.send(SIGTERM);
  const std::string said = live.wait().err;
  EXPECT_EQ(said.find('\x1b'), std::string::npos);
  EXPECT_THAT(said, HasSubstr("run folder: " + path("my run\\x1b[31m")));
  EXPECT_THAT(said, HasSubstr("--resume '" + path("my run\\x1b[31m'")));
}

TEST_F(ToyRun, RunThatCannotBeginLeavesItsFolderFree) {
  std::filesystem::rename(path("toy.h5"), path("elsewhere.h5"));
  expect_refused(run("a"), 4, {path("toy.h5"), "no such file"});
  std::filesystem::rename(path("elsewhere.h5"), path("toy.h5"));
  EXPECT_EQ(run("a").exit_code, 0);
}

}  // namespace
}  // namespace troupe
