// Runs of a supervised task, and of a GAN that is told a column of its data.

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kSupervisedTopology = R"(name: kinds
model:
  task: supervised
  network:
    input: [4, 4, 4, 1]
    layers:
      - convolution: {filters: 4, kernel: [2, 2, 2]}
      - activation: relu
      - batch_norm
      - flatten: {name: features}
      - dropout: 0.1
      - dense: {units: 2, name: kind}
      - dense: {units: 1, name: energy, input: features}
    outputs: [kind, energy]
  losses:
    kind: {kind: cross_entropy, target: pdg, classes: [11, 211]}
    energy: {kind: huber, target: energy, weight: 0.1}
data: {train: toy.h5}
train:
  epochs: 2
  micro_batch: 4
  micro_batches: 4
  seed: 1
  optimiser: {network: adam}
  learning_rate: {network: 0.01}
actors:
  replica: {count: 2}
  checkpointer: {every: 5 iterations, keep: 3}
  validator: {every: 1 epoch, events: 20}
cluster: {rebalance: false}
)";

// Cells of every other event are brighter: its kind is another.
class Supervised : public ClusterRun {
 protected:
  Supervised() {
    ToyData data(200);
    std::vector<float> kinds;
    for (std::size_t event = 0; event < data.events; ++event) {
      const bool second = event % 2 == 1;
      kinds.push_back(second ? 211.0f : 11.0f);
      for (std::size_t cell = 0; second && cell < 32; ++cell) data.cells[64 * event + cell] *= 4.0f;
    }
    pipeline::Hdf5Scribe file(path("toy.h5"));
    file.add("ECAL", {200, 4, 4, 4}, data.cells);
    file.add("target", {200, 2}, data.target);
    file.add("pdg", {200}, kinds);
  }
  void write_task() const { write_text(path("toy.yaml"), kSupervisedTopology); }
};

TEST_F(Supervised, AnyWorkersAndAResumedRunGiveOneHashAndTheSameFigures) {
  write_task();
  const JsonValue alone = summary_of("alone", {"--set", "actors.replica.count=1"});
  const std::string hash = alone["state_hash"].text();
  for (const char* workers : {"1", "2", "3"}) {
    const JsonValue summary = summary_of(workers, {"--workers", workers});
    EXPECT_EQ(summary["state_hash"].text(), hash) << workers;
    EXPECT_EQ(summary["ledger"]["sum"].text(), alone["ledger"]["sum"].text());
  }
  summary_of("stopped", {"--set", "train.iterations=7"});
  EXPECT_EQ(resumed("stopped", {"--set", "train.iterations=22"})["state_hash"].text(), hash);

  const JsonValue& row = alone["validation"]["rows"].list().front();
  EXPECT_EQ(row["events"].integer(), 20u);
  // Two epochs rank the events better than they find the middle between the classes.
  EXPECT_GT(row["comparison"]["kind/accuracy"].number(), 0.6);
  EXPECT_GT(row["comparison"]["kind/area"].number(), 0.8);
  EXPECT_FALSE(row["comparison"].has("energy/accuracy"));
}

TEST_F(Supervised, DeathOfAMemberCostsNoBit) {
  write_task();
  const Words more{"--set", "actors.validator.every=none"};
  Process process(command(run_words("a", kEndlessRun + more + Words{"--workers", "2"})));
  wait_until_training(process);
  ASSERT_NE(member(1), 0);
  ::kill(member(1), SIGKILL);
  ASSERT_TRUE(wait_until_said(process, "going on without member.")) << log();
  wait_until_training(process, steps() + 20);
  stop_and_expect_whole(process, more);
}

TEST_F(Supervised, BestStateAndEndGoByTheAccuracy) {
  write_task();
  const Words by_accuracy{"--set", "actors.validator.best=kind/area",
                          "--set", "train.stop={metric: validator/kind/accuracy, target: 0.3}",
                          "--set", "train.epochs=50"};
  const JsonValue alone = summary_of("alone", by_accuracy);
  EXPECT_THAT(alone["ended_early"].text(), HasSubstr("the validator's kind/accuracy is "));
  EXPECT_THAT(read_text(path("alone/checkpoints/best.json")), HasSubstr("\"kind/area\""));
  const JsonValue shared = summary_of("shared", by_accuracy + Words{"--workers", "2"});
  EXPECT_EQ(shared["state_hash"].text(), alone["state_hash"].text());
  EXPECT_EQ(shared["iterations"].integer(), alone["iterations"].integer());
}

TEST_F(Supervised, FigureThatTestEventsDoNotHaveIsTold) {
  write_task();
  const ProcessEnd end = run("a", {"--set", "actors.validator={best: kind/area, events: 1}"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(read_text(path("a/log.txt")),
              HasSubstr("the test events have no kind/area, as all of them are of one class"));
  EXPECT_FALSE(std::filesystem::exists(path("a/checkpoints/best.json")));
}

TEST_F(Supervised, MetricsAndTheEndTellLossesAccuracyAndArea) {
  write_task();
  const ProcessEnd end = run("told");
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("accuracy"));
  EXPECT_THAT(end.out, HasSubstr("kind "));
  std::size_t steps = 0, validations = 0;
  for (const JsonValue& line : json_lines(path("told/metrics.jsonl"))) {
    if (line["kind"].text() == "step") {
      ++steps;
      EXPECT_TRUE(line["losses"].has("kind") && line["losses"].has("energy"));
    }
    validations += line["kind"].text() == "validation" ? 1 : 0;
  }
  EXPECT_EQ(steps, 22u);
  EXPECT_EQ(validations, 2u);
  const ProcessEnd left = call({"export", path("told"), "--onnx", path("told.onnx")});
  EXPECT_EQ(left.exit_code, 0) << left.err;
  EXPECT_THAT(read_text(path("told.onnx.md")),
              AllOf(HasSubstr("Of its validation in the run, on test events."),
                    HasSubstr("kind/accuracy")));
}

// A mean of decay 0 is of the newest weights alone.
TEST_F(Supervised, MeanOfTheWeightsIsWhatIsJudgedAndLeaves) {
  write_task();
  const auto loss = [&](const std::string& name, const Words& more) {
    const JsonValue summary = summary_of(name, more);
    return summary["validation"]["rows"].list().front()["comparison"]["loss"].number();
  };
  // Some of the weights, and moving statistics.
  const auto weights = [&](const std::string& name, const Words& more = {}) {
    const ProcessEnd end =
        call(Words{"export", checkpoint(name, 0), "--keras", path("w.h5"), "--force"} + more);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return std::pair(rows_of(path("w.h5"), "model_1/conv3d_1/kernel:0", 2, 16),
                     rows_of(path("w.h5"), "model_1/batch_normalization_1/moving_mean:0", 4, 1));
  };
  const double without = loss("without", {});
  EXPECT_EQ(loss("newest", {"--set", "train.mean=0"}), without);
  EXPECT_NE(loss("mean", {"--set", "train.mean=0.9"}), without);
  const auto without_mean = weights("without");
  EXPECT_EQ(weights("newest"), without_mean);
  EXPECT_NE(weights("mean").first, without_mean.first);
  EXPECT_NE(weights("mean").second, without_mean.second);
  EXPECT_EQ(weights("mean", {"--raw"}), without_mean);
}

TEST_F(Supervised, VerbsThatNeedAGeneratorSaySoAndExportTakesTheNetwork) {
  write_task();
  summary_of("a", {"--set", "train.iterations=1"});
  expect_refused(call({"generate", checkpoint("a", 0), "--out", path("x.h5")}), 2,
                 {"is of a supervised task, which has no generator"});
  const ProcessEnd left = call({"export", checkpoint("a", 0), "--onnx", path("n.onnx"), "--keras",
                                path("n.h5"), "--numpy", path("n.npz")});
  EXPECT_EQ(left.exit_code, 0) << left.err;
  EXPECT_THAT(read_text(path("n.onnx.md")), HasSubstr("tells numbers of events"));
}

TEST_F(Supervised, ColumnThatTheFileLacksIsToldByCheck) {
  write_task();
  const ProcessEnd end =
      call({"check", path("toy.yaml"), "--set", "model.losses.kind.target=mass"});
  expect_refused(end, 4, {"no dataset mass; the file has", "pdg", "as a condition or a target"});
  expect_refused(call({"check", path("toy.yaml"), "--set", "model.losses.kind.classes=[11, 22]"}),
                 4, {"dataset pdg, event 1: is 211; expected one of 11, 22"});
}

TEST_F(Supervised, GeneratorsAreToldColumnsInTrainingAndWhenTheyMakeShowers) {
  const Words words{"--set", "model.generator.latent={size: 4, conditions: [pdg, energy]}",
                    "--set", "train.iterations=3",
                    "--set", "actors.validator.every=1 epoch"};
  const std::string hash = hash_of("alone", words);
  EXPECT_EQ(hash_of("three", words + Words{"--workers", "3"}), hash);
  const auto generate = [&](const Words& more) {
    return call(Words{"generate", checkpoint("alone", 0), "--out", path("x.h5"), "--events", "8",
                      "--force"} +
                more);
  };
  expect_refused(generate({}), 2, {"this model is asked for pdg; say which: --condition pdg=LAW"});
  expect_refused(generate({"--condition", "pdg=11", "--condition", "eta=1"}), 2,
                 {"--condition eta: this model is not asked for it"});
  const ProcessEnd made = generate({"--condition", "pdg=11,211"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
}

TEST_F(Supervised, LossOfTestEventsThatIsInfiniteIsToldAndMakesNoBest) {
  write_task();
  const ToyData data(200);
  std::vector<float> masses(200, 1.0F);
  std::fill(masses.begin() + 180, masses.end(), 3e38F);  // of the events for testing
  {
    pipeline::Hdf5Scribe file(path("far.h5"));
    file.add("ECAL", {200, 4, 4, 4}, data.cells);
    file.add("target", {200, 2}, data.target);
    file.add("pdg", {200}, std::vector<float>(200, 11.0F));
    file.add("mass", {200}, masses);
  }
  const Words far{"--set", "data.train=" + path("far.h5"),
                  "--set", "train.epochs=1",
                  "--set", "model.losses.energy={kind: mse, target: mass}"};
  const ProcessEnd end = run("far", far);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("the loss of test events is NaN or infinite behind step 11"));
  EXPECT_FALSE(std::filesystem::exists(path("far/best.json")));
}

// A generator that is told kinds as classes.
constexpr const char* kToldKinds = R"(name: told
model:
  generator:
    latent: {size: 8, conditions: [energy, pdg]}
    layers:
      - slice: {begin: 1, count: 1}
      - embedding: {classes: 300, units: 64, name: kinds}
      - reshape: [4, 4, 4, 1]
  discriminator:
    input: [4, 4, 4, 1]
    layers: [flatten, {dense: {units: 1, name: score}}]
    outputs: [score]
  losses: {score: {kind: bce_logits, target: label}}
data: {train: toy.h5}
train: {iterations: 1, micro_batch: 4, micro_batches: 1}
actors: {validator: {every: none}}
)";

TEST_F(Supervised, NumbersThatAreNoClassOfAnEmbeddingAreRefused) {
  write_text(path("told.yaml"), kToldKinds);
  expect_refused(
      call({"check", path("told.yaml"), "--set", "model.generator.layers.1.embedding.classes=200"}),
      4,
      {"dataset pdg, event 1: is 211; expected a whole number from 0 to 199, a class of an "
       "embedding"});
  const ProcessEnd trained = call({"run", path("told.yaml"), "--out", path("a")});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto generate = [&](const std::string& law) {
    return call({"generate", path("a"), "--out", path("x.h5"), "--events", "8", "--force",
                 "--condition", "pdg=" + law});
  };
  for (const char* const law : {"300", "-1", "11,0.5", "0:9"}) {
    expect_refused(generate(law), 2,
                   {"--condition pdg: layer kinds (embedding) has 300 classes; give a whole number "
                    "from 0 to 299"});
  }
  const ProcessEnd made = generate("11,211,299");
  EXPECT_EQ(made.exit_code, 0) << made.err;
}

}  // namespace
}  // namespace troupe
