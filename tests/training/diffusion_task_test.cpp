// A diffusion task: its gradients, that it learns by the same steps as a GAN, and its showers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "pipeline/data/generation.h"
#include "runtime/base/random.h"
#include "tests/training/alone.h"

namespace troupe::training_test {
namespace {

using Role = model::ContributionTensor::Role;

// A small U-Net of 4 x 4 cells, without kinks, that is told everything there is.
constexpr const char* kEveryCondition = R"(
model:
  task: diffusion
  diffusion: {conditions: [energy, angle, group/share], steps: 6}
  network:
    input: [4, 4, 5]
    layers:
      - slice: {begin: 1, count: 4, input: input}
      - global_max_pool
      - dense: 3
      - activation: {kind: silu, name: asked}
      - convolution: {filters: 3, kernel: [3, 3], padding: same, name: fine, input: input}
      - convolution: {filters: 4, kernel: [2, 2], stride: [2, 2]}
      - group_norm: 2
      - activation: silu
      - transposed_convolution: {filters: 3, kernel: [2, 2], stride: [2, 2]}
      - add: [asked]
      - concatenate: [fine]
      - convolution: {filters: 1, kernel: [3, 3], padding: same, name: velocity}
    outputs: [velocity]
  losses:
    velocity: {kind: mse, target: velocity, weight: 0.7}
data: {train: none.h5, schema: custom, names: {energy: energy}}
train: {micro_batch: 5, micro_batches: 2, optimiser: {network: adam}, learning_rate: {network: 0.01}}
)";

config::Topology every_condition(const std::vector<std::string>& overrides = {}) {
  auto loaded = config::parse_topology(kEveryCondition, "test", ".", overrides);
  CHECK(loaded.ok(), loaded.ok() ? "" : loaded.error().message);
  return std::move(loaded->topology);
}

// The contributions of one micro-batch in double.
class InDouble {
 public:
  explicit InDouble(const config::Topology& topology)
      : backend_(model::make_reference_backend(model::DataType::kFloat64)),
        gan_(model::Gan::compile(topology.model.gan, *backend_, topology.train.options.micro_batch)
                 .value()),
        stream_(*gan_) {}

  std::vector<double> denoise(const std::vector<double>& weights, const pipeline::Batch& batch) {
    const auto numbers = batch.conditions.as<float>();
    const model::EventBatch events{batch.images.as<float>().data(), batch.energies().data(),
                                   batch.angles().data(), batch.ecals().data(),
                                   numbers.data() + std::size_t{3} * batch.events};
    std::vector<double> values(static_cast<std::size_t>(layout().size));
    const model::GanParameters parameters{nullptr, nullptr, weights.data(), nullptr};
    const std::vector<model::GanMicroBatch> one{{events, 0, nullptr, values.data()}};
    gan_->learn(model::SlotKind::kDenoise, {parameters, one, {7}, stream_});
    return values;
  }
  double loss(const std::vector<double>& values) const { return 0.7 * values.back(); }
  const model::ContributionLayout& layout() const {
    return gan_->contributions(model::SlotKind::kDenoise);
  }

 private:
  std::unique_ptr<model::Backend> backend_;
  std::unique_ptr<const model::Gan> gan_;
  model::GanStream stream_;
};

TEST(DiffusionTask, GradientsAreThoseOfFiniteDifferences) {
  const config::Topology topology = every_condition({"train.micro_batches=1"});
  Alone alone(topology, model::make_reference_backend(model::DataType::kFloat32));
  const pipeline::TrainingState state = alone.initial_state();
  const pipeline::MicroBatch micro_batch = alone.micro_batch(0, 3);
  InDouble judge(topology);
  ASSERT_EQ(judge.layout().tensors.back().name, "loss/velocity");
  std::vector<double> weights(state.discriminator.weights.begin(),
                              state.discriminator.weights.end());
  const std::vector<double> values = judge.denoise(weights, micro_batch.events);
  EXPECT_GT(judge.loss(values), 0.1);
  constexpr double kStep = 1e-6;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double weight = weights[i];
    weights[i] = weight + kStep;
    const double above = judge.loss(judge.denoise(weights, micro_batch.events));
    weights[i] = weight - kStep;
    const double below = judge.loss(judge.denoise(weights, micro_batch.events));
    weights[i] = weight;
    EXPECT_NEAR(values[i], (above - below) / (2 * kStep), 1e-6) << "weight " << i;
  }
}

// Noise belongs to the micro-batch and the iteration: not to the thread, nor to who computes it.
TEST(DiffusionTask, TrainsToTheSameBitsForAnyThreads) {
  std::vector<runtime::Hash128> hashes;
  for (const int threads : {1, 2, 3}) {
    Alone alone(every_condition(), model::make_cpu_backend(), threads);
    pipeline::TrainingState state = alone.initial_state();
    EXPECT_TRUE(state.generator.weights.empty());
    for (int step = 0; step < 6; ++step) alone.step(state);
    hashes.push_back(pipeline::hash_of_state(state));
  }
  EXPECT_EQ(hashes[1], hashes[0]);
  EXPECT_EQ(hashes[2], hashes[0]);
}

TEST(DiffusionTask, DrawsNoiseAnewForEveryMicroBatchAndIteration) {
  const config::Topology topology = every_condition();
  Alone alone(topology, model::make_cpu_backend());
  pipeline::TrainingState state = alone.initial_state();
  // The events of the two micro-batches are made of these seeds.
  const auto loss = [&](std::uint64_t first, std::uint64_t second) {
    std::vector<pipeline::MicroBatch> two{alone.micro_batch(0, first),
                                          alone.micro_batch(1, second)};
    const auto record = alone.reduce_step(state, two);
    return pipeline::step_losses(alone.gan().contributions(model::SlotKind::kDenoise), record)[0];
  };
  const double own = loss(3, 4);
  EXPECT_EQ(loss(3, 4), own);
  EXPECT_NE(loss(4, 3), own) << "the same events with each other's noise";
  state.iteration = 1;
  EXPECT_NE(loss(3, 4), own);
}

// Events of one energy are all alike, so that their noise is told exactly.
TEST(DiffusionTask, LearnsToTellTheNoiseOfTheEventsThatItIsShown) {
  Alone alone(every_condition(), model::make_cpu_backend());
  pipeline::TrainingState state = alone.initial_state();
  std::vector<double> losses;
  for (int i = 0; i < 1500; ++i) {
    std::vector<pipeline::MicroBatch> events{alone.micro_batch(0, 1), alone.micro_batch(1, 1)};
    const auto record = alone.reduce_step(state, events);
    const auto& gan = alone.gan();
    losses.push_back(
        pipeline::step_losses(gan.contributions(model::SlotKind::kDenoise), record)[0]);
    CHECK(pipeline::apply(gan, alone.options(), record, state).ok());
  }
  const auto mean = [&](std::size_t first) {
    double sum = 0.0;
    for (std::size_t i = first; i < first + 20; ++i) sum += losses[i] / 20;
    return sum;
  };
  EXPECT_GT(mean(0), 0.5);
  EXPECT_LT(mean(1480), 0.6 * mean(0));
}

TEST(DiffusionTask, ShowersDependOnTheirNumbersAloneAndOnTheirConditions) {
  const config::Topology topology = every_condition();
  const auto backend = model::make_portable_backend().value();
  Alone alone(topology, model::make_cpu_backend());
  pipeline::TrainingState state = alone.initial_state();
  const pipeline::NetworkState& network = state.result();
  const std::vector<float> energies(40, 1.5F), angles(40, 1.0F), shares(40, 0.5F);
  const auto make = [&](std::size_t first, std::size_t events, int threads, float energy) {
    runtime::ThreadTeam team(threads, [&] { backend->prepare_thread(); });
    const auto maker = pipeline::ShowerMaker::create(topology.model.gan, *backend, team).value();
    EXPECT_EQ(maker->cells(), 16);
    const std::vector<float> asked(events, energy);
    pipeline::GenerationRequest request;
    request.energies = asked;
    request.angles = std::span(angles).first(events);
    request.columns = {std::span(shares).first(events)};
    request.first_event = first;
    std::vector<float> images(events * 16);
    maker->make(network.weights, network.moving, request, images);
    return images;
  };
  const auto whole = make(0, 40, 1, 1.5F);
  EXPECT_EQ(make(0, 40, 3, 1.5F), whole);
  const auto later = make(33, 7, 2, 1.5F);
  EXPECT_EQ(later, std::vector<float>(whole.begin() + 33 * 16, whole.end()));
  EXPECT_NE(make(33, 7, 1, 2.5F), later);
  for (const float cell : whole) EXPECT_TRUE(std::isfinite(cell));
}

// A shower of many steps takes long, and the caller has to say that it is alive, or to stop.
TEST(DiffusionTask, ShowersEndEarlyBetweenTheStepsOfABatch) {
  const config::Topology topology = every_condition();
  const auto backend = model::make_portable_backend().value();
  Alone alone(topology, model::make_cpu_backend());
  const pipeline::TrainingState state = alone.initial_state();
  const pipeline::NetworkState& network = state.result();
  runtime::ThreadTeam team(1);
  backend->prepare_thread();
  const auto maker = pipeline::ShowerMaker::create(topology.model.gan, *backend, team).value();
  const std::vector<float> numbers(20, 0.5F);
  pipeline::GenerationRequest request;
  request.energies = request.angles = numbers;
  request.columns = {std::span(numbers)};
  std::vector<std::size_t> asked;
  const auto make = [&](std::size_t questions) {
    asked.clear();
    std::vector<float> images(20 * 16);
    return maker->make(network.weights, network.moving, request, images, [&](std::size_t done) {
      asked.push_back(done);
      return asked.size() < questions;
    });
  };
  EXPECT_EQ(make(100), 20U);
  EXPECT_THAT(asked, testing::ElementsAre(0, 0, 0, 0, 0, 16, 16, 16, 16, 16, 16, 20));
  EXPECT_EQ(make(3), 0U);
  EXPECT_EQ(make(8), 16U);
  EXPECT_EQ(asked.size(), 8U);
}

}  // namespace
}  // namespace troupe::training_test
