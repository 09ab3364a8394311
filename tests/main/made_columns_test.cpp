// A GAN whose generator makes a column of the data with its image.

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"
#include "tests/support/tested_device.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kLeakingTopology = R"(name: leaking
model:
  generator:
    latent: {size: 8, conditions: [energy]}
    layers:
      - dense: 16
      - activation: {kind: leaky_relu, name: trunk}
      - dense: {units: 1, name: leakage}
      - dense: {units: 64, input: trunk}
      - reshape: [4, 4, 4, 1]
      - activation: softplus
    makes: {leak: leakage}
  discriminator:
    input: [4, 4, 4, 1]
    columns: [leak]
    layers:
      - dense: {units: 8, input: columns}
      - activation: {kind: leaky_relu, name: leaks}
      - flatten: {input: input}
      - concatenate: [leaks]
      - dense: 16
      - activation: leaky_relu
      - dense: {units: 1, name: score}
      - sum: {name: ecal, input: input}
    outputs: [score, ecal]
  losses:
    score: {kind: bce_logits, target: label}
    ecal: {kind: mape, target: ecal, weight: 0.1}
data: {train: toy.h5}
train:
  epochs: 2
  micro_batch: 4
  micro_batches: 4
  seed: 1
  optimiser: {g: adam, d: adam}
  learning_rate: {g: 0.002, d: 0.002}
actors:
  replica: {count: 2}
  checkpointer: {every: 5 iterations, keep: 3}
  validator: {every: 1 epoch, events: 20}
cluster: {rebalance: false}
)";

class MadeColumns : public ClusterRun {
 protected:
  // The leak of the data is 2 or 3.
  MadeColumns() {
    const ToyData data(200);
    std::vector<float> leaks;
    for (std::size_t event = 0; event < data.events; ++event) {
      leaks.push_back(event % 2 == 1 ? 2.0F : 3.0F);
    }
    pipeline::Hdf5Scribe file(path("toy.h5"));
    file.add("ECAL", {200, 4, 4, 4}, data.cells);
    file.add("target", {200, 2}, data.target);
    file.add("leak", {200}, leaks);
    write_text(path("toy.yaml"), kLeakingTopology);
  }
  Words generating(const std::string& run, const std::string& out,
                   const std::string& events = "64") const {
    return {"generate", checkpoint(run, 0), "--out", path(out), "--events", events, "--force"};
  }
};

TEST_F(MadeColumns, AnyWorkersReplicasAndAResumedRunGiveOneHash) {
  const Words ten = until_iteration(10);
  const std::string hash = hash_of("alone", ten + Words{"--set", "actors.replica.count=1"});
  EXPECT_EQ(hash_of("two", ten), hash);
  for (const char* workers : {"1", "3"}) {
    EXPECT_EQ(hash_of(workers, ten + Words{"--workers", workers}), hash) << workers;
  }
  summary_of("stopped", until_iteration(7));
  EXPECT_EQ(resumed("stopped", {"--set", "train.iterations=10"})["state_hash"].text(), hash);
  EXPECT_NE(hash_of("apart", ten + Words{"--set", "train.schedule=[d_both, g]"}), hash);
}

TEST_F(MadeColumns, ADeviceGivesTheHashAndTheFilesOfTheProcessor) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer does not see how PoCL's threads wait for each other";
#endif
  const Words device{"--set", "actors.replica.device=" + tested_device()};
  const Words both = until_iteration(6, {"--set", "train.schedule=[d_real, d_fake, d_both, g]"});
  const std::string hash = hash_of("cpu", both);
  EXPECT_EQ(hash_of("device", both + device), hash);
  EXPECT_EQ(hash_of("one", both + device + Words{"--set", "actors.replica.count=1"}), hash);
  const auto made = [&](const std::string& name, const Words& more) {
    const ProcessEnd end = call(generating("cpu", name) + more);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return read_text(path(name));
  };
  const std::string of_processor = made("cpu.h5", {"--device", "cpu"});
  EXPECT_EQ(made("device.h5", {"--device", tested_device(), "--device", "cpu"}), of_processor);
}

// The leaks of generated showers become those of the data, and stand beside the showers in files
// that train the same model again.
TEST_F(MadeColumns, AreLearnedAndWrittenBesideTheShowers) {
  const auto mean_leak = [&](const std::string& run) {
    const ProcessEnd end = call(generating(run, "g.h5"));
    EXPECT_EQ(end.exit_code, 0) << end.err;
    double sum = 0.0;
    for (const float leak : rows_of(path("g.h5"), "leak", 64, 1)) sum += double{leak};
    return sum / 64.0;
  };
  const Words one{"--set", "actors.replica.count=1", "--set", "actors.validator.every=none"};
  summary_of("untrained", until_iteration(1, one));
  EXPECT_LT(mean_leak("untrained"), 1.0);
  const Words slowly{"--set", "train.mean=0.99", "--set", "train.learning_rate={g: 5e-4, d: 1e-3}"};
  summary_of("trained", until_iteration(2000, one + slowly));
  EXPECT_NEAR(mean_leak("trained"), 2.5, 0.5);
  const Words again{"--set", "data.train=[" + path("g.h5") + "]", "--set",
                    "data.preprocessing.min_ecal=-1"};
  summary_of("again", until_iteration(1, one + again));
}

// Their networks have convolutions, as bfloat16 and int8 are of these alone. The column is made of
// what one of them finds.
const Words kConvolved{
    "--set",
    "model.generator.layers=[{dense: 128}, {reshape: [4, 4, 4, 2]}, {convolution: {filters: 4, "
    "kernel: [3, 3, 3], padding: same}}, {activation: {kind: leaky_relu, name: trunk}}, flatten, "
    "{dense: {units: 1, name: leakage}}, {convolution: {filters: 1, kernel: [3, 3, 3], padding: "
    "same, input: trunk}}, {activation: softplus}]",
    "--set",
    "model.discriminator.layers=[{convolution: {filters: 4, kernel: [2, 2, 2], input: input}}, "
    "{activation: leaky_relu}, {convolution: {filters: 4, kernel: [2, 2, 2]}}, flatten, "
    "{concatenate: [columns]}, {dense: 8}, {activation: leaky_relu}, {dense: {units: 1, name: "
    "score}}, {sum: {name: ecal, input: input}}]"};

TEST_F(MadeColumns, AreMadeInAnyPrecision) {
  const Words bfloat16 = until_iteration(10, kConvolved + Words{"--set", "model.precision=bf16"});
  EXPECT_EQ(hash_of("two", bfloat16),
            hash_of("one", bfloat16 + Words{"--set", "actors.replica.count=1"}));
  const auto leaks = [&](const Words& more) {
    const ProcessEnd end = call(generating("two", "g.h5") + more);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return rows_of(path("g.h5"), "leak", 64, 1);
  };
  const std::vector<float> as_trained = leaks({}), exact = leaks({"--precision", "fp32"});
  const std::vector<float> int8 = leaks({"--int8"});
  EXPECT_EQ(leaks({"--precision", "bf16"}), as_trained);
  EXPECT_EQ(leaks({"--int8", "--threads", "3"}), int8);
  for (const auto& rounded : {as_trained, int8}) {
    EXPECT_NE(rounded, exact);
    EXPECT_THAT(rounded, testing::Pointwise(testing::FloatNear(0.1F), exact));
  }
  EXPECT_NE(as_trained, int8);
}

TEST_F(MadeColumns, WarmStartTakesTheLayersThatMakeAndReadThem) {
  const Words plain{"--set",
                    "model.generator.makes={}",
                    "--set",
                    "model.generator.layers=[{dense: 64}, {reshape: [4, 4, 4, 1]}, "
                    "{activation: softplus}]",
                    "--set",
                    "model.discriminator.columns=[]",
                    "--set",
                    "model.discriminator.layers=[flatten, {dense: {units: 1, name: "
                    "score}}, {sum: {name: ecal, input: input}}]"};
  summary_of("making", until_iteration(3));
  summary_of("plain", until_iteration(3, plain));
  const Words few = until_iteration(2);
  const std::string warm = hash_of("warm", few + Words{"--from", path("making")});
  EXPECT_NE(warm, hash_of("cold", few));
  EXPECT_EQ(hash_of("warm workers", few + Words{"--from", path("making"), "--workers", "2"}), warm);
  const Words other{"--set", "model.generator.makes={target.0: leakage}", "--set",
                    "model.discriminator.columns=[target.0]"};
  EXPECT_NE(hash_of("other", few + other + Words{"--from", path("making")}), warm);
  expect_refused(run("a", few + Words{"--from", path("plain")}), 4,
                 {"train.from",
                  "weights of another model: it has /generator/dense1/kernel of "
                  "shape (8, 64) where this one has /generator/dense1/kernel of "
                  "shape (8, 16)"});
  expect_refused(run("b", few + plain + Words{"--from", path("making")}), 4,
                 {"train.from", "weights of another model: it has /generator/dense1/kernel"});
  expect_refused(
      call({"run", "--resume", path("making"), "--set", "model.generator.makes={target.1: leakage}",
            "--set", "model.discriminator.columns=[target.1]"}),
      3,
      {"model.generator.makes.leak: was leakage, is now absent",
       "model.discriminator.columns.0: was leak, is now target.1"});
}

// The checkpoint of imported weights makes the showers and columns of the one that they are of.
TEST_F(MadeColumns, LeaveByEachFormatAndComeBack) {
  summary_of("a", until_iteration(3));
  const auto exported = [&](const Words& more) {
    const ProcessEnd end = call(Words{"export", checkpoint("a", 0)} + more);
    EXPECT_EQ(end.exit_code, 0) << end.err;
  };
  exported({"--onnx", path("a.onnx"), "--keras", path("w.h5"), "--numpy", path("w.npz")});
  exported({"--onnx", path("p.onnx"), "--flavour", "par04"});
  EXPECT_THAT(read_text(path("a.onnx.md")),
              AllOf(HasSubstr("Further outputs (N, 1), as the data have them: leak."),
                    HasSubstr("makes the column leak by leakage")));
  EXPECT_THAT(read_text(path("p.onnx.md")),
              HasSubstr("Columns that it makes besides are left out: leak."));
  const ProcessEnd end =
      call({"import", path("w.h5"), "--model", path("toy.yaml"), "--out", path("i.h5")});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const auto made = [&](const std::string& from, const std::string& part, std::uint64_t width) {
    const ProcessEnd end =
        call({"generate", path(from), "--out", path("g.h5"), "--events", "20", "--force"});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return rows_of(path("g.h5"), part, 20, width);
  };
  EXPECT_EQ(made("i.h5", "leak", 1), made("a", "leak", 1));
  EXPECT_EQ(made("i.h5", "ECAL", 64), made("a", "ECAL", 64));
}

// In their order, whatever threads make them.
TEST_F(MadeColumns, OfAShowerDoNotDependOnTheCallThatMakesIt) {
  summary_of("a", until_iteration(3));
  const auto leaks = [&](const Words& more, std::uint64_t events) {
    const ProcessEnd end = call(generating("a", "g.h5", std::to_string(events)) + more);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return rows_of(path("g.h5"), "leak", events, 1);
  };
  const std::vector<float> all = leaks({}, 64);
  EXPECT_EQ(leaks({"--threads", "3"}, 64), all);
  EXPECT_EQ(leaks({"--first", "40"}, 20), std::vector<float>(all.begin() + 40, all.begin() + 60));
  EXPECT_NE(all[0], all[1]);
}

TEST_F(MadeColumns, AColumnThatTheFileLacksIsToldByCheck) {
  const ProcessEnd end =
      call({"check", path("toy.yaml"), "--set", "model.generator.makes={hcal: leakage}", "--set",
            "model.discriminator.columns=[hcal]"});
  expect_refused(end, 4, {"no dataset hcal; the file has", "leak"});
}

// The data's leaks are 2 or 3, and those of a generator that has learned nothing near 0.
TEST_F(MadeColumns, AreComparedWithThoseOfTheTestData) {
  summary_of("a", until_iteration(3));
  const ProcessEnd end =
      call({"validate", checkpoint("a", 0), "--replicas", "10", "--report", path("page.html")});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, testing::ContainsRegex("\ncolumn.leak +1 \\([0-9.]+\\)!"));
  EXPECT_THAT(end.out, HasSubstr("correlations of columns, response and energy"));
  const ProcessEnd json = call({"validate", checkpoint("a", 0), "--replicas", "10", "--json"});
  EXPECT_THAT(json.out, HasSubstr(R"("column.leak.wasserstein")"));
}

TEST_F(MadeColumns, ThatDifferAreNotComparedInOneFolder) {
  summary_of("a", until_iteration(3));
  summary_of("b", until_iteration(4, {"--set", "model.generator.makes={target.1: leakage}", "--set",
                                      "model.discriminator.columns=[target.1]"}));
  std::filesystem::copy(checkpoint("b", 0), path("a") + "/checkpoints");
  expect_refused(call({"validate", path("a"), "--replicas", "10"}), 2,
                 {"makes other columns than the first of these checkpoints"});
}

TEST_F(MadeColumns, AreNotAskedOfAFileWhoseImagesAreCompared) {
  summary_of("a", until_iteration(3));
  ToyData(60).write(path("plain.h5"));
  const ProcessEnd end = call({"validate", path("a"), "--against", path("plain.h5"), "--replicas",
                               "10", "--report", path("page.html")});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  expect_refused(
      run("b", {"--set", "data.train=" + path("plain.h5")}), 4,
      {"no dataset leak; the file has ECAL, target; the model makes it, or asks for it"});
}

// Parts that files of the schema have anyway keep their place.
TEST_F(MadeColumns, WithTheNameOfAPartOfTheFileAreWrittenUnderAnother) {
  const Words energy{"--set", "model.generator.makes={target.1: leakage}", "--set",
                     "model.discriminator.columns=[target.1]"};
  summary_of("a", until_iteration(2, energy));
  const ProcessEnd end = call(generating("a", "g.h5") + Words{"--energy", "50"});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(rows_of(path("g.h5"), "target", 64, 2)[1], 50.0F);
  EXPECT_LT(std::abs(rows_of(path("g.h5"), "made_target.1", 64, 1)[0]), 50.0F);
}

}  // namespace
}  // namespace troupe
