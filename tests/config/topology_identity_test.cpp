#include "config/topology_identity.h"

#include <gmock/gmock.h>

#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kModelAndData = "model: {zoo: gan3d_25}\ndata: {train: synthetic}\n";

// What changes the trained bits.
const std::vector<std::string> kStateChanges{
    "model.kernels=fastest",
    "model.precision=bf16",
    "model.losses.ecal.weight=0.2",
    "model.losses.ecal.kind=mae",
    "model.generator.latent.mode=prepend",
    "model.generator.layers.0.dense.initialiser=he_uniform",
    "model.discriminator.layers.2.dropout=0.3",
    "model.discriminator.layers.6.batch_norm.epsilon=1e-5",
    "data.train=x.h5",
    "data.preprocessing.scale=100",
    "data.preprocessing.threshold=1e-5",
    "data.preprocessing.min_ecal=1",
    "data.test_one_in=5",
    "data.cache=none",
    "data={train: synthetic, cache: none, window: 1GiB}",
    "data.on_bad_event=skip",
    "data.names.image=CELLS",
    "data.names.image=[ECAL, HCAL]",
    "data.names.image=[HCAL, ECAL]",
    "data.names.energy_offset=1",
    "data.events=1000",
    "data.shuffle=false",
    "train.remainder=carry",
    "train.remainder=partial",
    "data.synthetic.events=5000",
    "data.synthetic.seed=2",
    "data.synthetic.min_energy=20",
    "data.synthetic.max_energy=300",
    "data.synthetic.threshold=1e-5",
    "train.micro_batch=8",
    "train.micro_batches=8",
    "train.seed=2",
    "train.learning_rate.g=2e-3",
    "train.learning_rate.d.policy=plateau",
    "train.learning_rate.g.parts=[{policy: cosine, for: 5 epochs}]",
    "train.learning_rate.g={scaled: sqrt, per_events: 64}",
    "train.learning_rate.g={scaled: linear, per_events: 64}",
    "train.stop={patience: 3}",
    "train.stop={patience: 3, metric: d/generation}",
    "train.stop={patience: 3, metric: validator/merit}",
    "train.stop={patience: 3, metric: validator/sampling_fraction}",
    "train.stop={patience: 3, smoothing: 0.5}",
    "train.stop={patience: 3, min_delta: 0.5}",
    "train.mean=0.99",
    "train.mean={decay: 0.9999}",
    "train.optimiser.g=adam",
    "train.optimiser.d.rho=0.8",
    "train.schedule=[d_real, d_fake, g]",
    "train.schedule=[d_both, g]",
    "model.losses.generation.kind=hinge",
    "train.fake_conditions=uniform",
    "train.flip_probability=0",
    "train.empty_iterations_limit=11",
};

// What does not, but belongs to the run.
const std::vector<std::string> kRunChanges{
    "name=other",
    "actors.loader.credits=5",
    "actors.reducer.segment=2MiB",
    "actors.checkpointer.every=2 epochs",
    "actors.checkpointer.keep=5",
    "actors.validator.every=none",
    "actors.validator.events=100",
    "actors.validator.energy_bins=[[105, 115]]",
    "actors.validator.hit_threshold=2e-4",
    "actors.validator.best=sampling_fraction",
    "links=[{from: loader, to: replica, credits: 3}]",
};

// What a resumed run may change.
const std::vector<std::string> kFreeChanges{
    "train.epochs=100",
    "train.iterations=100",
    "actors.replica.count=3",
    "actors.replica.threads=2",
    "actors.loader.threads=2",
    "data.synthetic.folder=elsewhere",
    "data.index_folder=elsewhere",
    "data.cache_folder=elsewhere",
    "data.cache_limit=1GiB",
    "data.cache=disk",
    "data.cache=shard",
    "actors.checkpointer.copies='s3://bucket/runs'",
    "data.shard_memory=1GiB",
    "cluster.failure.stuck_after=2min",
    "cluster.failure.heartbeat=100ms",
    "cluster.failure.dead_after=9s",
    "cluster.hosts=[{address: node-a, workers: 2}]",
    "cluster={hosts: [{address: a}, {address: b}], bandwidth: [{between: [a, b], rate: 1Gbit}]}",
    "cluster.assign=[1, 3]",
    "cluster.listen='localhost:9000'",
    "cluster.keys=keys",
};

TEST(TopologyHash, ChangesWithEverythingTheTrainedBitsDependOn) {
  const auto base = topology_hash(parsed(kModelAndData).topology);
  std::vector<runtime::Hash128> seen{base};
  for (const std::string& change : kStateChanges) {
    const auto hash = topology_hash(parsed(kModelAndData, {change}).topology);
    EXPECT_THAT(seen, testing::Not(testing::Contains(hash))) << change;
    seen.push_back(hash);
  }
  const auto differ = [](const std::vector<std::string>& one, std::vector<std::string> more) {
    more.insert(more.end(), one.begin(), one.end());
    return topology_hash(parsed(kModelAndData, one).topology) !=
           topology_hash(parsed(kModelAndData, more).topology);
  };
  EXPECT_TRUE(differ({"data.train=x.h5"}, {"model.zoo=toy"}));
  EXPECT_TRUE(differ({"model.losses.ecal.target=energy"}, {"data.preprocessing.power=0.9"}));
}

TEST(TopologyHash, IsThatOfNothingGivenWhereNullIsGiven) {
  const auto base = topology_hash(parsed(kModelAndData).topology);
  for (const char* const change : {"train.mean=null", "train.stop=null"}) {
    EXPECT_EQ(topology_hash(parsed(kModelAndData, {change}).topology), base) << change;
  }
  const auto with = parsed(kModelAndData, {"train.mean=0.9", "train.mean=null"});
  EXPECT_EQ(topology_hash(with.topology), base) << "the later one counts";
}

TEST(TopologyHash, IsBlindToHowTheRunIsCarriedOut) {
  const auto base = topology_hash(parsed(kModelAndData).topology);
  for (const auto* changes : {&kRunChanges, &kFreeChanges}) {
    for (const std::string& change : *changes) {
      EXPECT_EQ(topology_hash(parsed(kModelAndData, {change}).topology), base) << change;
    }
  }
}

TEST(TopologyHash, IsBlindToWhereDataLiesAndHowTheFileIsWritten) {
  const auto at = [](const std::string& train) {
    return topology_hash(parsed("model: {zoo: toy}\ndata: {train: " + train + "}\n").topology);
  };
  EXPECT_EQ(at("a.h5"), at("[/elsewhere/b.h5, c.h5]"));
  const std::string spelt =
      "data:\n  schema: lcd-fixed\n  train: synthetic\ntrain: {seed: 1, micro_batch: 16}\n"
      "model: {kernels: portable, zoo: gan3d_25}\n";
  EXPECT_EQ(topology_hash(parsed(spelt).topology), topology_hash(parsed(kModelAndData).topology));
  EXPECT_EQ(topology_hash(parsed(kModelAndData, {"data.names.image=[CELLS]"}).topology),
            topology_hash(parsed(kModelAndData, {"data.names.image=CELLS"}).topology));
}

// Runs of earlier builds go on: options that are newer than a model do not change its hash. Whoever
// changes this number refuses all of them.
TEST(TopologyHash, OfAModelOfTheZooStaysAsItIs) {
  EXPECT_EQ(topology_hash(parsed(kModelAndData).topology).text(),
            "85ca483d3e84c039f62ec34bbe8ac9b1");
  EXPECT_EQ(
      topology_hash(load_topology(source_path("config/topologies/gan3d_51.yaml"))->topology).text(),
      "ad427d2f6753a93f2419f873a074c7e0");
}

TEST(TopologyHash, IsThatOfThePrintedTopology) {
  const LoadedTopology loaded = parsed(kModelAndData, {"train.learning_rate.g=0.1"});
  EXPECT_EQ(topology_hash(parsed(print_topology(loaded)).topology), topology_hash(loaded.topology));
}

TEST(Resume, MayChangeWorkersEpochsIterationsAndAddresses) {
  const Topology started = parsed(kModelAndData).topology;
  EXPECT_THAT(resume_problems(started, started), IsEmpty());
  for (const std::string& change : kFreeChanges) {
    EXPECT_THAT(resume_problems(started, parsed(kModelAndData, {change}).topology), IsEmpty())
        << change;
  }
}

TEST(Resume, MayChangeNothingElse) {
  const Topology started = parsed(kModelAndData).topology;
  for (const auto* changes : {&kStateChanges, &kRunChanges}) {
    for (const std::string& change : *changes) {
      const auto problems = resume_problems(started, parsed(kModelAndData, {change}).topology);
      EXPECT_FALSE(problems.empty()) << change;
    }
  }
}

TEST(Resume, MayChangeWhenTrainingEndsEarly) {
  const Topology started = parsed(kModelAndData, {"train.stop={patience: 3}"}).topology;
  for (const char* change : {"train.stop={patience: 4}", "train.stop={patience: 3, target: 0.1}"}) {
    const Topology now = parsed(kModelAndData, {change}).topology;
    EXPECT_THAT(resume_problems(started, now), IsEmpty()) << change;
    EXPECT_EQ(topology_hash(started), topology_hash(now)) << change;
  }
}

TEST(Resume, ProblemsNameTheFieldAndBothValues) {
  const auto problems =
      resume_problems(parsed(kModelAndData).topology,
                      parsed(kModelAndData, {"train.seed=2", "train.epochs=9",
                                             "model.discriminator.layers.2.dropout=0.3",
                                             "train.schedule=[d_real, g]"})
                          .topology);
  EXPECT_THAT(problems,
              ElementsAre("model.discriminator.layers.2.dropout.rate: was 0.2, is now 0.3",
                          "train.seed: was 1, is now 2",
                          "train.schedule: was [d_real, d_fake, g, g], is now [d_real, g]"));
}

}  // namespace
}  // namespace troupe::config
