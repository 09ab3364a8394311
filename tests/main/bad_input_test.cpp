// What data and topologies that cannot be used get: one message that names the place, an exit code
// of its own, and no run left behind.

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class BadData : public ToyRun {
 protected:
  void expect_data_error(const std::vector<std::string>& parts, const Words& more = {}) {
    expect_refused(run("a", more), 4, parts);
    EXPECT_FALSE(std::filesystem::exists(path("a/topology.yaml")));
    EXPECT_TRUE(checkpoints("a").empty());
  }
  ToyData data_{40};
  const std::string file_ = path("toy.h5");
};

TEST_F(BadData, MissingFile) {
  std::filesystem::remove(file_);
  expect_data_error({file_ + ": no such file"});
}

TEST_F(BadData, PatternWithoutMatch) {
  expect_data_error({"ele_*.h5: no file matches the pattern"},
                    {"--set", "data.train=" + path("ele_*.h5")});
}

TEST_F(BadData, NotHdf5) {
  write_text(file_, "energy,theta\n100,1.57\n");
  expect_data_error({file_, "not an HDF5 file"});
}

TEST_F(BadData, Truncated) {
  std::filesystem::resize_file(file_, std::filesystem::file_size(file_) / 2);
  expect_data_error({file_, "it is cut short"});
}

TEST_F(BadData, MissingDataset) {
  pipeline::Hdf5Scribe(file_).add("ECAL", {40, 4, 4, 4}, data_.cells);
  expect_data_error({file_, "target"});
}

TEST_F(BadData, WrongShape) {
  {
    pipeline::Hdf5Scribe scribe(file_);
    scribe.add("ECAL", {40, 4, 4, 2, 2}, data_.cells);
    scribe.add("target", {40, 2}, data_.target);
  }
  expect_data_error({file_, "ECAL"});
  {
    pipeline::Hdf5Scribe scribe(file_);
    scribe.add("ECAL", {40, 2, 8, 4}, data_.cells);
    scribe.add("target", {40, 2}, data_.target);
  }
  expect_data_error({file_, "ECAL", "4 x 4 x 4"});
}

TEST_F(BadData, NanNamesTheEvent) {
  data_.cells[17 * 64 + 5] = std::numeric_limits<float>::quiet_NaN();
  data_.write(file_);
  expect_data_error({file_, "ECAL", "event 17", "is nan"});
}

TEST_F(BadData, NegativeCellNamesTheEvent) {
  data_.cells[23 * 64] = -0.5f;
  data_.write(file_);
  expect_data_error({file_, "ECAL", "event 23", "is -0.5"});
}

TEST_F(BadData, SkippedBadEventsAreSaidInTheLog) {
  ToyData data(200);
  data.cells[23 * 64] = -0.5f;
  data.write(file_);
  const ProcessEnd end = run("a", {"--set", "data.on_bad_event=skip"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(read_text(path("a/log.txt")), HasSubstr("1 bad"));
}

TEST_F(BadData, NothingLeftAfterCuts) {
  expect_data_error({"toy.h5"}, {"--set", "data.preprocessing.min_ecal=1e6"});
}

TEST_F(BadData, FewerEventsThanAnIterationTakes) {
  expect_data_error({"180 events", "256"}, {"--set", "train.micro_batch=64"});
}

class BadTopology : public ToyRun {
 protected:
  void expect_topology_error(const std::string& text, const std::vector<std::string>& parts) {
    const std::string file = path("bad.yaml");
    write_text(file, text);
    expect_refused(call({"check", file}), 3, parts);
    expect_refused(call({"run", file, "--out", path("a")}), 3, parts);
    EXPECT_FALSE(std::filesystem::exists(path("a/topology.yaml")));
  }
};

TEST_F(BadTopology, EveryErrorComesAtOnceWithItsPlaceAndASuggestion) {
  expect_topology_error(R"(name: bad
model: {zoo: toi}
data: {train: toy.h5, schem: lcd-fixed}
train: {epochs: three}
actors:
  loader: {credits: 0}
)",
                        {"bad.yaml:2:14: model.zoo", "did you mean \"toy\"?",
                         "bad.yaml:3:23: data: unknown key \"schem\"; did you mean \"schema\"?",
                         "bad.yaml:4:17: train.epochs: expected a whole number",
                         "bad.yaml:6:21: actors.loader.credits: expected a whole number from 1"});
}

TEST_F(BadTopology, CycleWithoutATokenIsNamedBeforeDataIsOpened) {
  expect_topology_error(
      R"(name: bad
model: {zoo: toy}
data: {train: none.h5}
links:
  - {from: reducer, to: replica, tokens: 0}
)",
      {"bad.yaml:5:42: links.0.tokens", "reducer and replica wait for each other"});
}

TEST_F(BadTopology, ImpossibleShapeNamesTheLayer) {
  expect_topology_error(R"(name: bad
model:
  zoo: toy
  discriminator:
    input: [2, 2, 2, 1]
data: {train: none.h5}
)",
                        {"average_pool"});
}

TEST_F(BadTopology, NotYamlAndMissingFile) {
  expect_topology_error("name: [unclosed\n", {"bad.yaml:"});
  expect_refused(call({"run", path("none.yaml")}), 3, {"none.yaml", "No such file"});
}

// They would only be refused where a View has no room for them, or when data have been made.
TEST_F(BadTopology, WorkersThatWeakScalingCannotHaveAreRefusedBeforeTheRun) {
  const Words more{"--workers",         "2", "--set", "train.micro_batches=40000", "--set",
                   "train.scaling=weak"};
  Words check{"check", path("toy.yaml")};
  check.insert(check.end(), more.begin(), more.end());
  const std::string why = "train.micro_batches: scaling: weak makes 40000 x 2 workers";
  expect_refused(call(check), 3, {"--set train.micro_batches=40000: " + why});
  expect_refused(run("a", more), 3, {"--set train.micro_batches=40000: " + why});
  EXPECT_FALSE(std::filesystem::exists(path("a")));
}

// A run keeps it with paths in full, and reads that when it is resumed.
TEST_F(BadTopology, OneThatCouldNotBeReadAgainIsRefusedBeforeTheRun) {
  std::string files;
  for (int i = 0; i < 10'000; ++i) files += fmt::format("{:a>80}.h5, ", i);
  expect_topology_error("model: {zoo: toy}\ndata: {train: [" + files + "]}\n",
                        {"bad.yaml:2:15: data.train: ", "larger than 1048576 bytes"});
}

TEST_F(BadTopology, PipeIsRefusedWhereSeveralProcessesReadIt) {
  Process piped({"/bin/sh", "-c", "cat \"$2\" | \"$0\" run /dev/stdin --workers 2 --out \"$1\"",
                 command({}).front(), path("b"), path("toy.yaml")});
  expect_refused(piped.wait(), 3, {"/dev/stdin: is no file that can be read twice", "write it to"});
  EXPECT_FALSE(std::filesystem::exists(path("b")));
}

TEST_F(BadTopology, SettingsOnTheCommandLineAreNamedToo) {
  expect_refused(run("a", {"--set", "train.epoch=2", "--set", "train.micro_batch=0"}), 3,
                 {"--set train.epoch=2", "epochs", "--set train.micro_batch=0"});
}

}  // namespace
}  // namespace troupe
