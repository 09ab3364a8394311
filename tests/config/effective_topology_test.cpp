#include <gmock/gmock.h>

#include <fmt/format.h>

#include "config/topology_check.h"
#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

using testing::HasSubstr;

// Every section with values of its own.
const std::string kFull = R"(name: full
model:
  generator:
    latent: {size: 10, conditions: [energy, angle]}
    layers:
      - dense: 128
      - reshape: [4, 4, 4, 2]
      - activation: {kind: leaky_relu, slope: 0.2}
      - batch_norm: {momentum: 0.9}
      - upsample: [2, 2, 1]
      - convolution: {filters: 1, kernel: [3, 3, 3], padding: same, bias: false, name: image}
      - activation: tanh
  discriminator:
    input: [8, 8, 4, 1]
    layers:
      - power: {exponent: 1.25, name: cells}
      - convolution: {filters: 2, kernel: [3, 3, 2], input: input}
      - pad: [1, 1, 0]
      - average_pool: [2, 2, 2]
      - dropout: 0.25
      - flatten
      - dense: {units: 1, initialiser: zeros}
      - activation: {kind: sigmoid, name: generation}
      - angle: {input: cells, name: theta}
      - bins: {input: cells, name: counts}
    outputs: [generation, theta, counts]
  losses:
    generation: {kind: bce, target: label, weight: 2.5}
    theta: {kind: mae, target: angle}
    counts: {kind: mape, target: bins, weight: 0}
  kernels: fastest
data:
  train: ["data/*.h5", /absolute.h5]
  schema: custom
  names: {image: X, energy: y/b, energy_unit: 100, angle: "y:c"}
  preprocessing: {threshold: 1e-6, min_ecal: 0.1, scale: 100, power: 0.8}
  test_one_in: 5
  cache: none
  window: 1GiB
  on_bad_event: skip
  index_folder: index
train:
  epochs: 7
  iterations: 70
  micro_batch: 3
  micro_batches: 5
  seed: 9223372036854775807
  learning_rate:
    g: {rate: 0.1, policy: warmup, warmup_iterations: 9}
    d:
      scaled: sqrt
      per_events: 64
      parts:
        - {policy: warmup, for: 100 iterations}
        - {policy: cosine, for: 2 epochs, to: 0.1}
        - {policy: steps, for: 9 epochs, at: [1 epoch, 500 iterations], factor: 0.5}
        - {policy: exponential, every: 1 epoch}
  optimiser: {g: {kind: adadelta}, d: {kind: sgd, momentum: 0.9}}
  schedule: [g, d_fake]
  fake_conditions: batch
  flip_probability: 0
  empty_iterations_limit: 3
actors:
  loader: {threads: 3, credits: 9}
  replica: {count: 4, threads: 2}
  reducer: {segment: 256KiB}
  checkpointer: {every: 3 iterations, keep: 2}
  validator:
    every: none
    events: 10
    energy_bins: [[105, 115], [185, 195]]
    angle_bins: [[1.0, 1.2]]
    hit_threshold: 2e-4
    best: hits.wasserstein
links:
  - {from: loader, to: replica, credits: 2}
  - {from: replica, to: reducer, bytes: 1MiB, tokens: 1}
cluster:
  hosts: [{address: node-a, workers: 2}, {address: 10.0.0.2}]
  bandwidth:
    - {between: [node-a, 10.0.0.2], rate: 100Mbit}
    - {between: [[10.0.0.2], [node-a]], rate: 2500 Mbit, delay: 20ms}
  assign: [1, 3, 0]
  listen: "0.0.0.0:9000"
  keys: my-keys
  failure: {heartbeat: 100ms, dead_after: 1s, stuck_after: 2min}
)";

TEST(EffectiveTopology, ReadsEveryField) {
  const Topology t = parsed(kFull).topology;
  EXPECT_EQ(t.name, "full");
  EXPECT_FALSE(t.model.zoo.has_value());
  EXPECT_EQ(t.model.gan.latent.conditions.size(), 2u);
  EXPECT_EQ(t.model.gan.generator.layers[3].name, "batch_norm1");
  EXPECT_EQ(t.model.gan.generator.layers[6].name, "activation2");
  EXPECT_EQ(std::get<model::BatchNorm>(t.model.gan.generator.layers[3].kind).momentum, 0.9);
  EXPECT_EQ(std::get<model::Upsample>(t.model.gan.generator.layers[4].kind).factor,
            (model::Extent{2, 2, 1}));
  EXPECT_EQ(t.model.gan.discriminator.layers[1].input, "input");
  EXPECT_EQ(t.model.gan.losses[2].target, model::Target::kBins);
  EXPECT_EQ(t.model.kernels, Kernels::kFastest);
  EXPECT_FALSE(t.data.synthetic);
  EXPECT_EQ(t.data.dataset.paths, (std::vector<std::string>{"/folder/data/*.h5", "/absolute.h5"}));
  EXPECT_EQ(t.data.dataset.names->energy, "y/b");
  EXPECT_EQ(t.data.dataset.preprocessing->threshold, 1e-6f);
  EXPECT_EQ(t.data.dataset.cache, pipeline::CacheMode::kNone);
  EXPECT_EQ(t.data.dataset.window_bytes, 1ull << 30);
  EXPECT_EQ(t.data.dataset.index_folder, "/folder/index");
  EXPECT_EQ(t.train.iterations, 70u);
  EXPECT_EQ(t.validator.energy_bins, (ValidatorSection::Bins{{105, 115}, {185, 195}}));
  EXPECT_EQ(t.validator.angle_bins, (ValidatorSection::Bins{{1.0, 1.2}}));
  EXPECT_EQ(t.validator.hit_threshold_gev, 2e-4);
  EXPECT_EQ(t.validator.best, "hits.wasserstein");
  EXPECT_EQ(t.train.options.seed, 9223372036854775807u);
  EXPECT_EQ(t.train.options.generator_optimiser.rho, 0.95);
  EXPECT_EQ(t.train.options.schedule[0], model::SlotKind::kG);
  EXPECT_EQ(t.model.gan.flip_probability, 0.0);
  EXPECT_EQ(t.data.dataset.threads, 3);
  EXPECT_EQ(t.replica.count, 4u);
  EXPECT_EQ(t.reducer.segment_bytes, 256 << 10);
  EXPECT_EQ(t.checkpointer.every, (Every{Every::Unit::kIterations, 3}));
  ASSERT_EQ(t.links.size(), 2u);
  EXPECT_EQ(t.links[1].bytes, 1 << 20);
  EXPECT_EQ(t.links[1].tokens, 1);
  EXPECT_FALSE(t.links[1].credits.has_value());
  ASSERT_EQ(t.cluster.hosts.size(), 2u);
  EXPECT_EQ(t.cluster.hosts[0].workers, 2u);
  EXPECT_EQ(t.cluster.hosts[1].address, "10.0.0.2");
  EXPECT_EQ(t.cluster.hosts[1].workers, 1u);
  ASSERT_EQ(t.cluster.bandwidth.size(), 2u);
  EXPECT_EQ(t.cluster.bandwidth[0].between[0], (std::vector<std::string>{"node-a"}));
  EXPECT_EQ(t.cluster.bandwidth[0].between[1], (std::vector<std::string>{"10.0.0.2"}));
  EXPECT_EQ(t.cluster.bandwidth[0].bits_per_second, 100'000'000);
  EXPECT_EQ(t.cluster.bandwidth[1].between[0], (std::vector<std::string>{"10.0.0.2"}));
  EXPECT_EQ(t.cluster.bandwidth[1].bits_per_second, 2'500'000'000);
  EXPECT_EQ(t.cluster.bandwidth[1].delay, std::chrono::milliseconds(20));
  EXPECT_EQ(t.cluster.shares, (std::vector<std::uint64_t>{1, 3, 0}));
  EXPECT_EQ(t.cluster.listen, "0.0.0.0:9000");
  EXPECT_EQ(t.cluster.keys, "/folder/my-keys");
  EXPECT_EQ(t.cluster.failure.heartbeat, std::chrono::milliseconds(100));
  EXPECT_EQ(t.cluster.failure.dead_after, std::chrono::seconds(1));
  EXPECT_EQ(t.cluster.failure.stuck_after, std::chrono::minutes(2));
  const Topology uniform =
      parsed(kLeast, {"train.fake_conditions=uniform", "train.fake_energy=[0.2, 4]"}).topology;
  EXPECT_EQ(uniform.model.gan.fake_conditions, model::FakeConditions::kUniform);
  EXPECT_EQ(uniform.model.gan.fake_energy, (std::array<double, 2>{0.2, 4.0}));
}

TEST(EffectiveTopology, DerivesWhatFollowsFromTheRest) {
  const Topology full = parsed(kFull).topology;
  EXPECT_EQ(full.model.gan.generator.name, "generator");
  EXPECT_EQ(full.model.gan.generator.input, model::Shape::features(10));
  EXPECT_EQ(full.data.dataset.expected_shape, (pipeline::ImageShape{{8, 8, 4}}));
  EXPECT_EQ(full.model.gan.data_scale, 100.0);
  const Topology angle =
      parsed("model: {zoo: gan3d_51}\ndata: {train: synthetic, schema: lcd-angle}\n").topology;
  EXPECT_EQ(angle.model.gan.data_scale, 50.0);
  EXPECT_EQ(angle.data.showers.showers.detector, pipeline::DetectorKind::kAngle51);
  EXPECT_EQ(angle.data.dataset.preprocessing->power, 0.85);
}

TEST(EffectiveTopology, PrintedTopologyParsesToTheSameValues) {
  std::vector<std::pair<std::string, LoadedTopology>> examples{{"full", parsed(kFull)}};
  for (const std::string& path : shipped_topologies()) {
    auto loaded = load_topology(path);
    ASSERT_TRUE(loaded.ok()) << message_of(loaded);
    const char* const network = has_network(loaded->topology) ? "network" : "g";
    loaded =
        load_topology(path, {fmt::format("train.learning_rate.{}={{policy: plateau}}", network)});
    ASSERT_TRUE(loaded.ok()) << message_of(loaded);
    examples.emplace_back(path, *loaded);
  }
  for (const auto& [name, loaded] : examples) {
    const std::string text = print_topology(loaded);
    // Elsewhere: paths must not depend on where the file lies.
    const auto again = parse_topology(text, "run/topology.yaml", "/another/folder");
    ASSERT_TRUE(again.ok()) << name << "\n" << message_of(again) << "\n" << text;
    EXPECT_EQ(values_of(again->topology), values_of(loaded.topology)) << name;
    EXPECT_EQ(again->topology.model.gan.data_scale, loaded.topology.model.gan.data_scale);
    EXPECT_EQ(again->topology.data.dataset.expected_shape,
              loaded.topology.data.dataset.expected_shape);
  }
}

// On every processor, as the README promises; so they may also be tried in bf16.
TEST(EffectiveTopology, ShippedTopologiesComputeWithPortableKernels) {
  for (const std::string& path : shipped_topologies()) {
    const auto loaded = load_topology(path, {"model.precision=bf16"});
    ASSERT_TRUE(loaded.ok()) << message_of(loaded);
    EXPECT_EQ(loaded->topology.model.kernels, Kernels::kPortable) << path;
  }
}

TEST(EffectiveTopology, PrintedValuesSayWhereTheyCameFrom) {
  const std::string text = print_topology(parsed(
      kLeast + "train:\n  micro_batch: 2\n",
      {"train.seed=5", "model.kernels=fastest", "model.generator.layers.0.dense.bias=false"}));
  EXPECT_THAT(text, HasSubstr("\n  micro_batch: 2  # t.yaml:4\n"));
  EXPECT_THAT(text, HasSubstr("\n  seed: 5  # --set train.seed=5\n"));
  EXPECT_THAT(text, HasSubstr("\n  micro_batches: 4  # default\n"));
  EXPECT_THAT(text, HasSubstr("\n  train: [/folder/a.h5]  # t.yaml:2\n"));
  EXPECT_THAT(text,
              HasSubstr("  # zoo/toy.yaml:5, --set model.generator.layers.0.dense.bias=false"));
}

TEST(EffectiveTopology, AnOverlayKeepsWhatItDoesNotName) {
  const Topology t = parsed(
                         "model:\n  zoo: toy\n  losses: {ecal: {weight: 0.3}}\n"
                         "data: {train: a.h5}\n")
                         .topology;
  EXPECT_EQ(t.model.gan.losses[2].weight, 0.3);
  EXPECT_EQ(t.model.gan.losses[2].target, model::Target::kEcal);
  EXPECT_EQ(t.model.gan.losses[0].weight, 2.0);
}

const std::string kTwoHeads =
    "model: {zoo: toy, discriminator: {outputs: [generation, ecal]}}\n"
    "data: {train: a.h5}\n";

TEST(EffectiveTopology, AnOutputOfTheZooGoesWithItsLossAndTheLayersOnlyItNeeds) {
  const std::vector<LoadedTopology> ways{parsed(kTwoHeads),
                                         parsed(kTwoHeads, {"model.losses.auxiliary=null"}),
                                         parsed(kLeast, {"model.losses.auxiliary=null"})};
  for (const LoadedTopology& loaded : ways) {
    const model::GanDescription& gan = loaded.topology.model.gan;
    EXPECT_THAT(gan.discriminator.outputs, testing::ElementsAre("generation", "ecal"));
    ASSERT_EQ(gan.losses.size(), 2u);
    EXPECT_EQ(gan.losses[1].output, "ecal");
    ASSERT_EQ(gan.discriminator.layers.size(), 9u);
    EXPECT_EQ(gan.discriminator.layers.back().name, "ecal");
    // What stands behind the layer that went keeps its place in the file.
    EXPECT_EQ(loaded.origins.at("model.discriminator.layers.8").text(), "zoo/toy.yaml:24:7");
    EXPECT_FALSE(loaded.origins.contains("model.discriminator.layers.9"));
    EXPECT_EQ(values_of(parsed(print_topology(loaded)).topology), values_of(loaded.topology));
  }
  const auto sums = load_topology(shipped_topologies()[0], {"model.losses.ecal=null"});
  ASSERT_TRUE(sums.ok()) << message_of(sums);
  EXPECT_EQ(sums->topology.model.gan.losses.size(), 2u);
  EXPECT_THAT(message_of(parse(kLeast, {"model.losses.auxilary=null"})),
              HasSubstr("model.losses.auxilary: \"auxilary\" is no output to take out; did you "
                        "mean \"auxiliary\"?"));
  EXPECT_THAT(message_of(parse(kLeast, {"model.losses.auxiliary=null", "model.losses.ecal=null",
                                        "model.losses.generation=null"})),
              HasSubstr("model.losses: no loss is left"));
}

// Signs of patterns in the folder's name are no pattern of the author's.
TEST(EffectiveTopology, PatternsLeaveTheFolderTheyAreRelativeToAsItIs) {
  const std::string text = "model: {zoo: toy}\ndata: {train: [\"*.h5\", a.h5, \"/b[1]/*.h5\"]}\n";
  const auto loaded = parse_topology(text, "t.yaml", R"(/run[1]*?\)");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const std::vector<std::string> expected{R"(/run[[]1][*][?]\\/*.h5)", R"(/run[1]*?\/a.h5)",
                                          "/b[1]/*.h5"};
  EXPECT_EQ(loaded->topology.data.dataset.paths, expected);
  const auto again = parse_topology(print_topology(*loaded), "own.yaml", "/other[2]");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->topology.data.dataset.paths, expected);
}

}  // namespace
}  // namespace troupe::config
