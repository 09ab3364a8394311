// Runs of a generator whose images a classifier judges, and `troupe validate` of them.

#include <gmock/gmock.h>

#include <filesystem>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr const char* kClassifier = R"(name: kinds
model:
  task: supervised
  network:
    input: [4, 4, 4, 1]
    layers:
      - convolution: {filters: 4, kernel: [2, 2, 2]}
      - activation: relu
      - flatten
      - dense: {units: 5}
      - activation: relu
      - dense: {units: 2, name: kind}
    outputs: [kind]
  losses:
    kind: {kind: cross_entropy, target: pdg, classes: [11, 211]}
data: {train: toy.h5}
train:
  epochs: 4
  micro_batch: 4
  micro_batches: 4
  seed: 1
  optimiser: {network: adam}
  learning_rate: {network: 0.01}
actors:
  checkpointer: {every: 1 epoch, keep: 1}
  validator: {every: none}
)";

// Cells of every other event are brighter: its kind is another. "kinds.h5" tells them apart.
class JudgedImages : public ClusterRun {
 protected:
  JudgedImages() {
    ToyData data(200);
    std::vector<float> kinds;
    for (std::size_t event = 0; event < data.events; ++event) {
      const bool second = event % 2 == 1;
      kinds.push_back(second ? 211.0f : 11.0f);
      for (std::size_t cell = 0; second && cell < 32; ++cell) data.cells[64 * event + cell] *= 4.0f;
    }
    {
      pipeline::Hdf5Scribe file(path("toy.h5"));
      file.add("ECAL", {200, 4, 4, 4}, data.cells);
      file.add("target", {200, 2}, data.target);
      file.add("pdg", {200}, kinds);
    }
    write_text(path("kinds.yaml"), kClassifier);
    const ProcessEnd end = call({"run", path("kinds.yaml"), "--out", path("kinds")});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    std::filesystem::rename(checkpoint("kinds", 0), path("kinds.h5"));
  }

  // The run of a GAN that is judged after each epoch.
  Words judged(const Words& more = {}) const {
    return Words{"--set",
                 "actors.validator=" +
                     fmt::format("{{every: 1 epoch, events: 20, judge: {}}}", path("kinds.h5"))} +
           more;
  }
  static std::vector<JsonValue> validations(const std::string& metrics) {
    std::vector<JsonValue> rows;
    for (const JsonValue& line : json_lines(metrics)) {
      if (line["kind"].text() == "validation") rows.push_back(line["fields"]["rows"].list()[1]);
    }
    return rows;
  }
};

TEST_F(JudgedImages, AnyWorkersAndAResumedRunFindTheSameFiguresAndTheSameBits) {
  const std::string unjudged = hash_of("unjudged");
  const JsonValue alone = summary_of("alone", judged());
  EXPECT_EQ(alone["state_hash"].text(), unjudged);
  const auto rows = validations(path("alone/metrics.jsonl"));
  ASSERT_EQ(rows.size(), 2u);
  const JsonValue& last = rows.back()["comparison"];
  EXPECT_GT(last["judge_frechet"].number(), 0.0);
  EXPECT_GT(last["judge_confidence"].number(), 50.0);
  EXPECT_LE(last["judge_confidence"].number(), 100.0);
  EXPECT_GE(last["judge_classes"].number(), 0.0);
  EXPECT_EQ(rows.back()["chosen"]["figure"].text(), "judge_frechet");
  const JsonValue& data = alone["validation"]["rows"].list().front();
  EXPECT_EQ(data["events"].integer(), 20u);
  EXPECT_GT(data["floor"]["judge_frechet"].number(), 0.0);

  const JsonValue three = summary_of("three", judged({"--workers", "3"}));
  EXPECT_EQ(three["state_hash"].text(), unjudged);
  summary_of("stopped", judged({"--set", "train.iterations=13"}));
  EXPECT_EQ(resumed("stopped", {"--set", "train.iterations=22"})["state_hash"].text(), unjudged);
  for (const char* name : {"three", "stopped"}) {
    const auto others = validations(path(std::string(name) + "/metrics.jsonl"));
    EXPECT_EQ(others.back()["comparison"]["judge_frechet"].number(), last["judge_frechet"].number())
        << name;
  }
}

TEST_F(JudgedImages, BestIsChosenAndTrainingEndsByItsFigures) {
  const ProcessEnd end =
      run("a", judged({"--set", "train.epochs=20", "--set",
                       "train.stop={metric: validator/judge_confidence, patience: 1, min_delta: "
                       "1e6}"}));
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("judge_frechet"));
  EXPECT_THAT(end.out, HasSubstr("By the classifier that judges"));
  // No validation comes nearer by so much: the one behind the first ends it, with the next
  // iteration.
  EXPECT_EQ(validations(path("a/metrics.jsonl")).size(), 3u);
  EXPECT_THAT(read_text(path("a/checkpoints/best.json")), HasSubstr("\"judge_frechet\""));
  EXPECT_THAT(read_text(path("a/log.txt")), HasSubstr("which knows 2 classes by 5 features"));
}

TEST_F(JudgedImages, ValidateFindsWhatTheRunTold) {
  run("a", judged());
  const auto rows = validations(path("a/metrics.jsonl"));
  const ProcessEnd end =
      call({"validate", checkpoint("a", 0), "--json", "--replicas", "20", "--events", "20"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  const JsonValue found = last_line(end);
  EXPECT_EQ(found["events"].integer(), 20u);
  const JsonValue& generated = found["generated"].list()[0];
  EXPECT_FALSE(generated.has("verdict"));
  ASSERT_EQ(generated["figures"].list().size(), 3u);
  for (const JsonValue& figure : generated["figures"].list()) {
    const double told = rows.back()["comparison"][figure["name"].text()].number();
    EXPECT_NEAR(figure["value"].number(), told, 1e-5 * told);
    EXPECT_GT(figure["uncertainty"].number() + figure["floor"].number(), 0.0);
  }
  // A folder is ranked, also by the classifier of another one's folder.
  run("plain", {"--set", "actors.checkpointer={every: 1 epoch, keep: 2}"});
  run("other", {"--set", "train.seed=2"});
  const ProcessEnd ranked =
      call({"validate", path("plain"), "--judge", path("kinds.h5"), "--replicas", "2"});
  EXPECT_EQ(ranked.exit_code, 0) << ranked.err;
  EXPECT_THAT(ranked.out, testing::StartsWith("checkpoint "));
  EXPECT_THAT(ranked.out, HasSubstr("The best by judge_frechet, " + path("plain/checkpoints/")));
  EXPECT_THAT(ranked.out, testing::Not(HasSubstr("fault")));
}

TEST_F(JudgedImages, ClassifierThatDoesNotFitIsRefusedWithShapes) {
  const auto judge_set = [&](const std::string& file) {
    return Words{"--set", fmt::format("actors.validator={{every: 1 epoch, judge: {}}}", file)};
  };
  run("gan");
  const std::string made = checkpoint("gan", 0);
  for (const Words& verb : {Words{"check", path("toy.yaml")}, run_words("b")}) {
    expect_refused(call(verb + judge_set(made)), 2,
                   {"actors.validator.judge", made, "its task is gan; a judge is a classifier"});
    expect_refused(call(verb + judge_set(path("none.h5"))), 4, {"none.h5"});
  }
  expect_refused(call({"check", path("kinds.yaml"), "--set", "actors.validator.judge=a.h5"}), 3,
                 {"a classifier judges generated images, and a supervised task makes none"});
  expect_refused(call(Words{"check", path("toy.yaml")} + judged() +
                      Words{"--set", "actors.validator.best=response"}),
                 3, {"a classifier judges, and finds no response"});
  expect_refused(call({"check", path("toy.yaml"), "--set", "actors.validator.best=judge_classes"}),
                 3, {"give one as actors.validator.judge"});
  expect_refused(call({"validate", made, "--judge", path("kinds.h5"), "--report", path("a.html")}),
                 2, {"the page is of showers"});
  expect_refused(call({"validate", path("toy.h5"), "--against", path("toy.h5"), "--judge", "a.h5"}),
                 2, {"a classifier judges what a checkpoint makes"});

  // The same cells in another shape, and in another unit.
  const std::string smaller = R"({input: [4, 4, 2, 1], layers: [flatten, {dense: 3},
      {dense: {units: 2, name: kind}}], outputs: [kind]})";
  ToyData data(40);
  {
    pipeline::Hdf5Scribe file(path("flat.h5"));
    file.add("ECAL", {80, 4, 4, 2}, data.cells);
    std::vector<float> twice = data.target;
    twice.insert(twice.end(), data.target.begin(), data.target.end());
    file.add("target", {80, 2}, twice);
    file.add("pdg", {80}, std::vector<float>(80, 11.0f));
  }
  const ProcessEnd flat = call({"run", path("kinds.yaml"), "--out", path("flat"), "--set",
                                "data.train=" + path("flat.h5"), "--set",
                                "model.network=" + smaller, "--set", "train.iterations=1"});
  EXPECT_EQ(flat.exit_code, 0) << flat.err;
  const std::string other = checkpoint("flat", 0);
  expect_refused(
      call(run_words("b") + judge_set(other)), 2,
      {"actors.validator.judge", other,
       "judges images that have 4x4x2 cells, but the ones to be judged have 4x4x4 cells: 2 and "
       "4 along z"});
  expect_refused(
      call({"validate", made, "--judge", other}), 2,
      {"judges images that have 4x4x2 cells, but the ones to be judged have 4x4x4 cells: 2 and "
       "4 along z"});
  expect_refused(
      call(run_words("b") + judged({"--set", "data.preprocessing={scale: 2}"})), 2,
      {"was trained on cells to the power 1 of 1 per GeV", "have power 1 and 2 per GeV"});
}

}  // namespace
}  // namespace troupe
