// Runs of a diffusion task, and what its checkpoints are for.

#include <gmock/gmock.h>

#include <csignal>

#include "tests/main/cluster_run.h"
#include "tests/support/tested_device.h"

namespace troupe {
namespace {

// An iteration has as many steps as one of the toy, which ClusterRun counts by.
constexpr const char* kDiffusionTopology = R"(name: noise
model:
  task: diffusion
  diffusion: {conditions: [energy], steps: 3}
  network:
    input: [4, 4, 4, 3]
    layers:
      - slice: {begin: 1, count: 2, input: input}
      - global_max_pool
      - dense: 4
      - activation: {kind: silu, name: asked}
      - convolution: {filters: 4, kernel: [3, 3, 3], padding: same, name: fine, input: input}
      - add: [asked]
      - batch_norm
      - activation: silu
      - convolution: {filters: 6, kernel: [2, 2, 2], stride: [2, 2, 2]}
      - attention: 1
      - dropout: 0.1
      - transposed_convolution: {filters: 4, kernel: [2, 2, 2], stride: [2, 2, 2]}
      - concatenate: [fine]
      - convolution: {filters: 1, kernel: [1, 1, 1], name: velocity}
    outputs: [velocity]
  losses:
    velocity: {kind: mse, target: velocity}
data: {train: toy.h5, preprocessing: {power: 0.25, scale: 100}}
train:
  epochs: 2
  micro_batch: 4
  micro_batches: 4
  schedule: [denoise, denoise, denoise, denoise]
  seed: 1
  optimiser: {network: adam}
  learning_rate: {network: 0.01}
actors:
  replica: {count: 2}
  checkpointer: {every: 5 iterations, keep: 3}
  validator: {every: none}
cluster: {rebalance: false}
)";

class Diffusion : public ClusterRun {
 protected:
  Diffusion() { write_text(path("toy.yaml"), kDiffusionTopology); }
};

TEST_F(Diffusion, AnyWorkersAndAResumedRunGiveOneHash) {
  const std::string hash = hash_of("alone", {"--set", "actors.replica.count=1"});
  for (const char* workers : {"1", "3"}) {
    EXPECT_EQ(hash_of(workers, {"--workers", workers}), hash) << workers;
  }
  summary_of("stopped", {"--set", "train.iterations=7"});
  EXPECT_EQ(resumed("stopped", {"--set", "train.iterations=22"})["state_hash"].text(), hash);
  EXPECT_NE(hash_of("other", {"--set", "train.seed=2"}), hash);
}

TEST_F(Diffusion, DeathOfAMemberCostsNoBit) {
  Process process(command(run_words("a", kEndlessRun + Words{"--workers", "2"})));
  wait_until_training(process);
  ASSERT_NE(member(1), 0);
  ::kill(member(1), SIGKILL);
  ASSERT_TRUE(wait_until_said(process, "going on without member.")) << log();
  wait_until_training(process, steps() + 20);
  stop_and_expect_whole(process);
}

TEST_F(Diffusion, ValidatesAsAGanAndTellsTheLossOfTestEvents) {
  const Words words{"--set", "actors.validator={every: 1 epoch, events: 20}"};
  const JsonValue summary = summary_of("a", words);
  const JsonValue& row = summary["validation"]["rows"].list().back();
  EXPECT_EQ(row["events"].integer(), 20u);
  EXPECT_EQ(count(R"("kind":"test_losses")"), 2u);
  for (const JsonValue& line : json_lines(path("a/metrics.jsonl"))) {
    if (line["kind"].text() != "test_losses") continue;
    EXPECT_EQ(line["slot"].text(), "test_denoise");
    EXPECT_GT(line["losses"]["velocity"].number(), 0.0);
  }
  summary_of("without", words + Words{"--set", "actors.validator.test_losses=false"});
  EXPECT_EQ(count(R"("kind":"validation")", "without"), 2u);
  EXPECT_EQ(count(R"("kind":"test_losses")", "without"), 0u);
  const ProcessEnd judged = call({"validate", path("a"), "--events", "20"});
  EXPECT_EQ(judged.exit_code, 0) << judged.err;
}

TEST_F(Diffusion, GeneratesTheSameShowersForAnyThreadsAndOthersInOtherSteps) {
  summary_of("a");
  const auto generate = [&](const std::string& name, const Words& more) {
    const ProcessEnd end =
        call(Words{"generate", checkpoint("a", 0), "--out", path(name), "--events", "40"} + more);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return read_text(path(name));
  };
  const std::string bytes = generate("1.h5", {"--threads", "1"});
  EXPECT_EQ(generate("3.h5", {"--threads", "3"}), bytes);
  EXPECT_EQ(generate("same.h5", {"--steps", "3"}), bytes);
  EXPECT_NE(generate("more.h5", {"--steps", "5"}), bytes);
  const JsonValue info = last_line(call({"data", "info", path("1.h5"), "--json"}));
  EXPECT_EQ(info["events"].integer(), 40);
}

TEST_F(Diffusion, HasTheHashAndTheShowersOfTheProcessorOnADevice) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer does not see how PoCL's threads wait for each other";
#endif
  const std::string device = tested_device();
  const Words twelve = until_iteration(12);
  EXPECT_EQ(hash_of("device", twelve + Words{"--set", "actors.replica.device=" + device}),
            hash_of("cpu", twelve));
  for (const std::string& each : {std::string("cpu"), device}) {
    const ProcessEnd made = call({"generate", checkpoint("device", 0), "--events", "20", "--device",
                                  each, "--out", path(each + ".h5")});
    EXPECT_EQ(made.exit_code, 0) << made.err;
  }
  EXPECT_EQ(read_text(path("cpu.h5")), read_text(path(device + ".h5")));
}

TEST_F(Diffusion, ExportWritesItsNetworkWithACardThatSaysHowToUseIt) {
  summary_of("a", {"--set", "train.iterations=1"});
  const ProcessEnd end = call({"export", checkpoint("a", 0), "--onnx", path("n.onnx"), "--keras",
                               path("n.h5"), "--numpy", path("n.npz")});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(end.out.find("_discriminator"), std::string::npos) << "there is one network";
  EXPECT_THAT(read_text(path("n.onnx.md")), testing::HasSubstr("the velocity v"));
  const Words from{"--set", "train.iterations=1", "--from", path("n.h5")};
  EXPECT_NE(hash_of("warm", from), hash_of("cold", {"--set", "train.iterations=1"}));
}

TEST_F(Diffusion, WhatItHasNotIsRefused) {
  summary_of("a", {"--set", "train.iterations=1"});
  expect_refused(
      call({"export", checkpoint("a", 0), "--onnx", path("x.onnx"), "--flavour", "par04"}), 3,
      {"Par04 takes generators, and not the network of task diffusion"});
  expect_refused(call({"generate", checkpoint("a", 0), "--out", path("x.h5"), "--int8"}), 2,
                 {"int8: is for generators"});
}

}  // namespace
}  // namespace troupe
