// Data and topologies that cannot be used get one message that names the place and an exit code of
// their own, and leave no run behind. The messages themselves are tested in tests/pipeline and
// tests/config.

#include <gmock/gmock.h>

#include <filesystem>
#include <limits>

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

TEST_F(BadData, NanNamesTheEvent) {
  data_.cells[17 * 64 + 5] = std::numeric_limits<float>::quiet_NaN();
  data_.write(file_);
  expect_data_error({file_, "ECAL", "event 17", "is nan"});
}

TEST_F(BadData, SkippedBadEventsAreSaidInTheLog) {
  ToyData data(200);
  data.cells[23 * 64] = -0.5f;
  data.write(file_);
  const ProcessEnd end = run("a", {"--set", "data.on_bad_event=skip"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  const std::string log = read_text(path("a/log.txt")), warning = " warning " + file_;
  EXPECT_THAT(log, HasSubstr("1 bad"));
  const std::size_t at = log.find(warning);
  EXPECT_NE(at, std::string::npos) << log;
  EXPECT_EQ(log.find(warning, at + 1), std::string::npos) << "the test data are of the same file";
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
  loader: {credits: -1}
)",
                        {"bad.yaml:2:14: model.zoo", "did you mean \"toy\"?",
                         "bad.yaml:3:23: data: unknown key \"schem\"; did you mean \"schema\"?",
                         "bad.yaml:4:17: train.epochs: expected a whole number",
                         "bad.yaml:6:21: actors.loader.credits: expected a whole number from 0"});
}

TEST_F(BadTopology, LayersThatDoNotFitSayInWhichLineAndIntoWhichShape) {
  expect_topology_error(
      R"(model:
  zoo: toy
  discriminator:
    layers:
      - convolution: {filters: 3, kernel: [3, 3, 3]}
      - max_pool: [1, 1, 4]
      - group_norm: {groups: 2, input: convolution1}
      - slice: {axis: x, begin: 1, count: 2, input: convolution1}
      - sum: {name: ecal, input: input}
      - dense: {units: 1, name: generation, input: slice1}
      - dense: {units: 1, name: auxiliary, input: group_norm1}
    outputs: [generation, auxiliary, ecal, max_pool1]
data: {train: toy.h5}
)",
      {"bad.yaml:6:9: model.discriminator.layers.1: layer max_pool1 (max_pool): a window of 4 "
       "along z does not fit into 2 cells of 2x2x2x3",
       "bad.yaml:7:9: model.discriminator.layers.2: layer group_norm1 (group_norm): layer "
       "convolution1 gives 2x2x2x3, and 3 channels cannot be cut into 2 groups",
       "bad.yaml:8:9: model.discriminator.layers.3: layer slice1 (slice): 2 from 1 on are more "
       "than the 2 along x of 2x2x2x3, which layer convolution1 gives"});
}

}  // namespace
}  // namespace troupe
