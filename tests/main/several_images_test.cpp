// Runs on data that have two images of each event.

#include <gmock/gmock.h>

#include "runtime/base/random.h"
#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr std::size_t kEvents = 200, kEcal = 64, kHcal = 24, kAll = kEcal + kHcal;

constexpr const char* kTwoBranches = R"(name: kinds
model:
  task: supervised
  network:
    input: [88, 1, 1, 1]
    layers:
      - slice: {axis: x, count: 64}
      - reshape: [4, 4, 4, 1]
      - convolution: {filters: 4, kernel: [2, 2, 2]}
      - activation: relu
      - flatten: {name: electromagnetic}
      - slice: {axis: x, begin: 64, count: 24, input: input}
      - reshape: [2, 2, 6, 1]
      - convolution: {filters: 4, kernel: [2, 2, 3]}
      - activation: relu
      - flatten
      - concatenate: [electromagnetic]
      - dense: {units: 2, name: kind}
    outputs: [kind]
  losses:
    kind: {kind: cross_entropy, target: pdg, classes: [11, 211]}
data: {train: toy.h5, names: {image: [ECAL, HCAL]}}
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

constexpr const char* kBothMade = R"(name: both
model:
  generator:
    latent: {size: 8, conditions: [energy]}
    layers:
      - dense: {units: 32, name: trunk}
      - dense: 64
      - reshape: [4, 4, 4, 1]
      - convolution: {filters: 1, kernel: [3, 3, 3], padding: same}
      - activation: softplus
      - flatten: {name: electromagnetic}
      - dense: {units: 24, input: trunk}
      - activation: softplus
      - flatten: {name: hadronic}
      - concatenate: {with: [hadronic], input: electromagnetic}
      - reshape: [88, 1, 1, 1]
  discriminator:
    input: [88, 1, 1, 1]
    layers:
      - slice: {axis: x, count: 64}
      - reshape: [4, 4, 4, 1]
      - convolution: {filters: 4, kernel: [2, 2, 2]}
      - activation: leaky_relu
      - flatten: {name: electromagnetic}
      - slice: {axis: x, begin: 64, count: 24, input: input, name: hadronic}
      - dense: 4
      - activation: leaky_relu
      - concatenate: [electromagnetic]
      - dense: {units: 1, name: score}
      - sum: {name: total, input: input}
    outputs: [score, total]
  losses:
    score: {kind: bce_logits, target: label}
    total: {kind: mape, target: ecal, weight: 0.1}
data: {train: toy.h5, names: {image: [ECAL, HCAL]}}
train: {epochs: 1, micro_batch: 4, micro_batches: 4, seed: 1}
actors:
  replica: {count: 2}
  validator: {every: none}
cluster: {rebalance: false}
)";

// Every other event is of another kind, which has more in HCAL.
class SeveralImages : public ToyRun {
 protected:
  SeveralImages() {
    const ToyData data(kEvents);
    std::vector<float> hcal, both, kinds;
    for (std::uint32_t event = 0; event < kEvents; ++event) {
      const float factor = event % 2 == 1 ? 4.0f : 1.0f;
      kinds.push_back(event % 2 == 1 ? 211.0f : 11.0f);
      for (std::uint32_t cell = 0; cell < kHcal; ++cell) {
        const double share =
            runtime::random_uniform({.seed = 2}, static_cast<std::uint32_t>(event * kHcal + cell));
        hcal.push_back(data.target[2 * event + 1] * 1e-3f * factor * static_cast<float>(share));
      }
      const auto copy = [&](const std::vector<float>& cells, std::size_t each) {
        const auto first = cells.begin() + static_cast<std::ptrdiff_t>(event * each);
        both.insert(both.end(), first, first + static_cast<std::ptrdiff_t>(each));
      };
      copy(data.cells, kEcal);
      copy(hcal, kHcal);
    }
    pipeline::Hdf5Scribe file(path("toy.h5"));
    file.add("ECAL", {kEvents, 4, 4, 4}, data.cells, {.chunk = {16, 4, 4, 4}, .gzip = 1});
    file.add("HCAL", {kEvents, 2, 2, 6}, hcal, {.chunk = {23, 2, 2, 6}, .gzip = 1});
    file.add("both", {kEvents, kAll}, both);
    file.add("target", {kEvents, 2}, data.target);
    file.add("pdg", {kEvents}, kinds);
  }
  void write_topology(const char* text) const { write_text(path("toy.yaml"), text); }
};

TEST_F(SeveralImages, TrainTwoBranchesToTheHashOfOneImageWithAnyWorkersAndCache) {
  write_topology(kTwoBranches);
  const ProcessEnd checked = call({"check", path("toy.yaml")});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("input 88x1x1x1"));
  const JsonValue alone = summary_of("alone", {"--set", "actors.replica.count=1"});
  const std::string hash = alone["state_hash"].text();
  EXPECT_GT(alone["validation"]["rows"].list().front()["comparison"]["kind/area"].number(), 0.9);
  EXPECT_EQ(hash_of("two"), hash);
  EXPECT_EQ(hash_of("one-image", {"--set", "data.names.image=both"}), hash);
  EXPECT_EQ(hash_of("members", {"--workers", "2", "--set", "data.cache=disk"}), hash);
  EXPECT_EQ(hash_of("shard", {"--set", "data.cache=shard"}), hash);
  summary_of("stopped", {"--set", "train.iterations=7"});
  EXPECT_EQ(resumed("stopped", {"--set", "train.iterations=22"})["state_hash"].text(), hash);
  const ProcessEnd left = call({"export", checkpoint("alone", 0), "--onnx", path("n.onnx")});
  EXPECT_EQ(left.exit_code, 0) << left.err;
}

TEST_F(SeveralImages, AreMadeTogetherByAGenerator) {
  write_topology(kBothMade);
  const std::string hash = hash_of("one", {"--set", "actors.replica.count=1"});
  EXPECT_EQ(hash_of("two"), hash);
  const std::string file = path("made.h5");
  const ProcessEnd made = call({"generate", checkpoint("one", 0), "--out", file, "--events", "40"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const JsonValue info = last_line(call({"data", "info", file, "--json"}));
  EXPECT_EQ(info["events"].integer(), 40u);
  EXPECT_EQ(info["shape"].list().front().integer(), kAll);
  const ProcessEnd judged = call({"validate", checkpoint("one", 0), "--events", "20"});
  EXPECT_EQ(judged.exit_code, 0) << judged.err;
}

TEST_F(SeveralImages, AreToldBehindTheirParts) {
  const ProcessEnd told = call({"data", "info", path("toy.h5"), "--schema", "lcd-fixed", "--image",
                                "ECAL", "--image", "HCAL"});
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("HCAL         float32 200 x 2 x 2 x 6, chunks 23 x 2 x 2 x 6"));
  EXPECT_THAT(told.out, HasSubstr("200 events of 88 x 1 x 1, 0 bad"));
  write_topology(kTwoBranches);
  expect_refused(call({"check", path("toy.yaml"), "--set", "data.names.image=[ECAL, pdg]"}), 4,
                 {"dataset ECAL and pdg", "expected images of 88 x 1 x 1"});
}

}  // namespace
}  // namespace troupe
