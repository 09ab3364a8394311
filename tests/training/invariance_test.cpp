// The bits of a run do not depend on replicas, threads, or on being stopped and resumed.

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "config/shipped.h"
#include "config/topology_identity.h"
#include "launch/run/head_run.h"
#include "pipeline/checkpoint/checkpoint.h"
#include "tests/pipeline/format_fixture.h"
#include "tests/support/stride.h"
#include "tests/support/temporary_folder.h"
#include "tests/training/alone.h"

namespace troupe::training_test {
namespace {

using pipeline::TrainingState;

bool is_of_pictures(const std::string& model) {
  return model == "dcgan_mnist" || model == "digits";
}

// Trains with the actors and returns the summary's state hash.
std::string trained_hash(const TemporaryFolder& scratch, const std::string& model,
                         std::vector<std::string> overrides) {
  static int number = 0;
  overrides.insert(overrides.begin(), {"actors.validator.every=none", "train.seed=3"});
  if (is_of_pictures(model)) {
    const pipeline::SmallDigits pictures{64, 28, 28};
    overrides.push_back("data.train=[" + pictures.write(scratch.path(), "train") + "]");
  } else {
    overrides.push_back("data.synthetic.events=64");
  }
  const config::Topology topology = zoo_topology(model, overrides);
  runtime::FileDisk disk;
  auto log = runtime::Log::silent();
  auto folder = launch::RunFolder::create(scratch.path() + "/run" + std::to_string(number++), disk);
  CHECK(folder.ok(), folder.ok() ? "" : folder.error().message);
  launch::HeadRunRequest request;
  request.loaded.topology = topology;
  request.data_folder = scratch.path() + "/data";
  const auto result = launch::run_locally(request, *folder, disk, log);
  CHECK(result.ok(), result.ok() ? "" : result.error().message);
  CHECK(!result->error, result->error ? result->error->message : "");
  const std::string key = "\"state_hash\":\"";
  return result->summary_json.substr(result->summary_json.find(key) + key.size(), 32);
}

using Case = std::pair<std::string, std::vector<std::string>>;

class Placement : public testing::TestWithParam<Case> {};

TEST_P(Placement, StateHashIsTheSameForAnyReplicasAndThreads) {
  const TemporaryFolder scratch;
  const std::string model = GetParam().first;
  const std::vector<std::string> size = GetParam().second;
  const auto hash = [&](int replicas, int threads) {
    std::vector<std::string> overrides = size;
    overrides.push_back("actors.replica.count=" + std::to_string(replicas));
    overrides.push_back("actors.replica.threads=" + std::to_string(threads));
    return trained_hash(scratch, model, overrides);
  };
  const std::string alone = hash(1, 1);
  EXPECT_EQ(alone, hash(1, 2));
  EXPECT_EQ(alone, hash(2, 1));
  EXPECT_EQ(alone, hash(2, 2));
  EXPECT_EQ(alone, hash(3, 1));
  std::vector<std::string> other_seed = size;
  other_seed.push_back(is_of_pictures(model) ? "train.seed=9" : "data.synthetic.seed=9");
  EXPECT_NE(alone, trained_hash(scratch, model, other_seed));
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"gan3d_12",
       {"train.iterations=5", "train.epochs=20", "train.micro_batch=4", "train.micro_batches=4",
        "model.kernels=fastest"}},
      {"gan3d_12",
       {"train.iterations=3", "train.micro_batch=2", "train.micro_batches=5",
        "model.kernels=portable"}},
      {"gan3d_25",
       {"train.iterations=2", "train.micro_batch=1", "train.micro_batches=3",
        "model.kernels=fastest"}},
      {"gan3d_12", {"train.iterations=3", "train.micro_batch=2", "train.schedule=[d_both, g]"}},
      // Micro-batches share the statistics of batch norm.
      {"gan3d_12",
       {"train.iterations=3", "train.micro_batch=2", "train.micro_batches=5",
        "train.schedule=[d_real, d_fake, d_both, g]",
        "model.generator.layers.3={batch_norm: {sync: true}}",
        "model.discriminator.layers.8={batch_norm: {sync: true}}"}},
      {"particle_12",
       {"train.iterations=3", "train.micro_batch=2", "train.micro_batches=3",
        "model.network.layers.5={batch_norm: {sync: true}}"}},
      // The discriminator is told the energy, which is drawn for fakes.
      {"gan3d_12",
       {"train.iterations=3", "train.micro_batch=2", "train.micro_batches=5",
        "train.schedule=[d_real, d_both, g]", "train.fake_conditions=uniform",
        "model.discriminator={input: [12, 12, 12, 1], conditions: [energy], outputs: "
        "[generation], layers: [{average_pool: [4, 4, 4]}, {flatten: {}}, "
        "{concatenate: [conditions]}, {dense: 8}, {activation: leaky_relu}, "
        "{dense: 1}, {activation: {kind: sigmoid, name: generation}}]}"}},
      // The generator makes the energy of the particle with its image, twice.
      {"gan3d_12",
       {"train.iterations=3", "train.micro_batch=2", "train.micro_batches=5",
        "train.schedule=[d_real, d_fake, d_both, g]",
        "model.generator={latent: {size: 8}, makes: {target.1: one, target: two}, "
        "layers: [{dense: {units: 1, name: one}}, {dense: {units: 1, name: two, "
        "input: input}}, {dense: {units: 216, input: input}}, {reshape: [6, 6, 6, "
        "1]}, {upsample: [2, 2, 2]}, {activation: relu}]}",
        "model.discriminator={input: [12, 12, 12, 1], columns: [target, target.1], "
        "outputs: [generation], layers: [{average_pool: [4, 4, 4]}, {flatten: {}}, "
        "{concatenate: [columns]}, {dense: 8}, {activation: leaky_relu}, "
        "{dense: 1}, {activation: {kind: sigmoid, name: generation}}]}"}},
      {"particle_12",
       {"train.iterations=5", "train.micro_batch=4", "train.micro_batches=4", "train.epochs=20",
        "data.synthetic.particles=[electron, pion]"}},
      {"calo_unet_12", {"train.iterations=2", "train.micro_batch=1", "train.micro_batches=3"}},
      // The only micro-batch is computed by all threads together.
      {"gan3d_25",
       {"train.iterations=2", "train.micro_batch=2", "train.micro_batches=1",
        "model.precision=bf16"}},
      {"toy", {"train.iterations=5", "train.micro_batch=2", "train.micro_batches=5"}},
      {"gan3d_12_dense", {"train.iterations=1", "train.micro_batch=1", "train.micro_batches=3"}},
      {"dcgan_mnist", {"train.iterations=1", "train.micro_batch=2", "train.micro_batches=3"}},
      {"digits", {"train.iterations=3", "train.micro_batch=2", "train.micro_batches=5"}},
      {"calo_unet_25", {"train.iterations=1", "train.micro_batch=1", "train.micro_batches=2"}},
      {"gan3d_51", {"train.iterations=1", "train.micro_batch=1", "train.micro_batches=2"}}};
  return all;
}

INSTANTIATE_TEST_SUITE_P(Zoo, Placement, testing::ValuesIn(cases()));

TEST(Zoo, EveryModelIsTrainedInSeveralPlacements) {
  for (const std::string& model : config::zoo_names()) {
    EXPECT_GT(std::ranges::count(cases(), model, &Case::first), 0) << model;
  }
}

TEST(GradientPenalty, TrainsToTheSameBitsForAnyThreads) {
  const config::Topology topology = zoo_topology(
      "toy", {"train.schedule=[d_both, d_fake, g]", "model.discriminator.layers.2=layer_norm",
              "model.losses.generation={kind: wasserstein, target: label, gradient_penalty: 10}"});
  std::vector<runtime::Hash128> hashes;
  for (const int threads : {1, 2, 3}) {
    Alone alone(topology, model::make_cpu_backend(), threads);
    TrainingState state = alone.initial_state();
    for (int step = 0; step < 9; ++step) alone.step(state);
    hashes.push_back(pipeline::hash_of_state(state));
  }
  EXPECT_EQ(hashes[1], hashes[0]);
  EXPECT_EQ(hashes[2], hashes[0]);
}

// Saves and reads the state through a checkpoint file.
TrainingState through_a_checkpoint(const TrainingState& state, const Alone& alone) {
  pipeline::Checkpoint checkpoint;
  checkpoint.state = state;
  checkpoint.state_hash = pipeline::hash_of_state(state);
  const auto file = pipeline::encode_checkpoint(checkpoint, alone.gan(), alone.options());
  CHECK(file.ok(), file.ok() ? "" : file.error().message);
  auto read = pipeline::decode_checkpoint(*file, "memory", alone.gan(), alone.options());
  CHECK(read.ok(), read.ok() ? "" : read.error().message);
  return std::move(read->state);
}

class Resume : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Zoo, Resume,
                         testing::Values("gan3d_12", "particle_12", "calo_unet_12",
                                         "gan3d_12_dense", "digits", "toy", "toy_in_rounds"));

TEST_P(Resume, AtEverySlotOfAnIterationGivesTheSameBits) {
  const std::string word = GetParam();
  std::vector<std::string> overrides{"train.micro_batch=2", "train.micro_batches=3"};
  if (word == "toy_in_rounds") {
    overrides.push_back("model.generator.layers.3={batch_norm: {sync: true}}");
    overrides.push_back("model.discriminator.layers.2={batch_norm: {sync: true}}");
  }
  const config::Topology topology = zoo_topology(word == "toy_in_rounds" ? "toy" : word, overrides);
  Alone uninterrupted(topology, model::make_cpu_backend());
  const std::uint64_t steps = 3 * uninterrupted.options().schedule.size();
  TrainingState state = uninterrupted.initial_state();
  for (std::uint64_t step = 0; step < steps; ++step) uninterrupted.step(state);
  const runtime::Hash128 expected = pipeline::hash_of_state(state);

  // Step 0 is always flagged and made again, so stopping after it is stopping after a retry. One in
  // three stops still meets every slot.
  for (std::uint64_t stop = 1 % stride(3); stop < steps; stop += stride(3)) {
    Alone first(topology, model::make_cpu_backend());
    TrainingState stopped = first.initial_state();
    for (std::uint64_t step = 0; step < stop; ++step) first.step(stopped);
    TrainingState resumed = through_a_checkpoint(stopped, first);
    EXPECT_EQ(pipeline::hash_of_state(stopped), pipeline::hash_of_state(resumed));
    Alone second(topology, model::make_cpu_backend(), 2);
    for (std::uint64_t step = stop; step < steps; ++step) second.step(resumed);
    EXPECT_EQ(expected, pipeline::hash_of_state(resumed)) << "stopped before step " << stop;
  }
}

TEST(ExactSums, FirstStepMeasuresItsScalesAndIsMadeAgain) {
  const config::Topology topology = zoo_topology("toy");
  Alone alone(topology, model::make_cpu_backend());
  TrainingState state = alone.initial_state();
  std::vector<pipeline::MicroBatch> micro_batches;
  for (std::uint32_t i = 0; i < alone.options().micro_batches; ++i) {
    micro_batches.push_back(alone.micro_batch(i, i));
  }
  EXPECT_EQ(alone.reduce_step(state, micro_batches).header.attempt, 1U);
  const std::uint64_t slots = alone.options().schedule.size();
  for (std::uint64_t step = 0; step < slots; ++step) alone.step(state);
  EXPECT_EQ(alone.reduce_step(state, micro_batches).header.attempt, 0U);
}

}  // namespace
}  // namespace troupe::training_test
