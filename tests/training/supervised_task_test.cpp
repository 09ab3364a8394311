// A supervised task: its gradients, and that it learns by the same steps as a GAN.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/random.h"
#include "tests/training/alone.h"

namespace troupe::training_test {
namespace {

using Role = model::ContributionTensor::Role;

// Every loss of the task on one network of 3 x 3 cells, without kinks.
constexpr const char* kEveryLoss = R"(
model:
  task: supervised
  network:
    input: [3, 3, 1]
    layers:
      - convolution: {filters: 2, kernel: [2, 2]}
      - activation: tanh
      - batch_norm
      - flatten: {name: features}
      - dense: {units: 3, name: kind, input: features}
      - dense: {units: 1, name: energy, input: features}
      - dense: {units: 1, name: share, input: features}
      - dense: {units: 1, name: angle, input: features}
      - dense: {units: 1, name: ecal, input: features}
      - dense: {units: 1, name: is_pion, input: features}
    outputs: [kind, energy, share, angle, ecal, is_pion]
  losses:
    kind: {kind: cross_entropy, target: pdg, classes: [11, 22, 211], weight: 0.7}
    energy: {kind: huber, target: energy}
    share: {kind: mse, target: group/share, weight: 2}
    angle: {kind: mae, target: angle}
    ecal: {kind: mape, target: ecal, weight: 0.1}
    is_pion: {kind: bce_logits, target: share.1}
data: {train: none.h5, schema: custom, names: {energy: energy}}
train: {micro_batch: 5, micro_batches: 1}
)";

config::Topology every_loss() {
  auto loaded = config::parse_topology(kEveryLoss, "test", ".");
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

  std::vector<double> fit(const std::vector<double>& weights, const std::vector<double>& moving,
                          const pipeline::Batch& batch) {
    const auto numbers = batch.conditions.as<float>();
    const model::EventBatch events{batch.images.as<float>().data(), batch.energies().data(),
                                   batch.angles().data(), batch.ecals().data(),
                                   numbers.data() + std::size_t{3} * batch.events};
    std::vector<double> values(static_cast<std::size_t>(layout().size));
    const model::GanParameters parameters{nullptr, nullptr, weights.data(), moving.data()};
    const std::vector<model::GanMicroBatch> one{{events, 0, nullptr, values.data()}};
    gan_->learn(model::SlotKind::kFit, {parameters, one, {7}, stream_});
    return values;
  }
  double loss(const std::vector<double>& values) const {
    double sum = 0.0;
    for (const auto& tensor : layout().tensors) {
      if (tensor.role != Role::kLoss) continue;
      const auto term = static_cast<std::size_t>(tensor.index);
      sum +=
          gan_->description().losses[term].weight * values[static_cast<std::size_t>(tensor.offset)];
    }
    return sum;
  }
  const model::ContributionLayout& layout() const {
    return gan_->contributions(model::SlotKind::kFit);
  }
  const model::ParameterLayout& parameters() const { return gan_->discriminator().parameters(); }

 private:
  std::unique_ptr<model::Backend> backend_;
  std::unique_ptr<const model::Gan> gan_;
  model::GanStream stream_;
};

TEST(SupervisedTask, GradientsOfEveryLossAreThoseOfFiniteDifferences) {
  const config::Topology topology = every_loss();
  Alone alone(topology, model::make_reference_backend(model::DataType::kFloat32));
  const pipeline::TrainingState state = alone.initial_state();
  const pipeline::MicroBatch micro_batch = alone.micro_batch(0, 3);
  InDouble judge(topology);
  std::vector<double> weights(state.discriminator.weights.begin(),
                              state.discriminator.weights.end());
  const std::vector<double> moving(state.discriminator.moving.begin(),
                                   state.discriminator.moving.end());
  const std::vector<double> values = judge.fit(weights, moving, micro_batch.events);
  constexpr double kStep = 1e-6;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double weight = weights[i];
    weights[i] = weight + kStep;
    const double above = judge.loss(judge.fit(weights, moving, micro_batch.events));
    weights[i] = weight - kStep;
    const double below = judge.loss(judge.fit(weights, moving, micro_batch.events));
    weights[i] = weight;
    EXPECT_NEAR(values[i], (above - below) / (2 * kStep), 1e-6) << "weight " << i;
  }
}

// What a GAN's schedule has besides is not there: neither fakes nor a second network.
TEST(SupervisedTask, ContributesItsNetworkAndItsLosses) {
  const config::Topology topology = every_loss();
  EXPECT_EQ(topology.train.options.schedule, std::vector{model::SlotKind::kFit});
  Alone alone(topology, model::make_reference_backend(model::DataType::kFloat32));
  const pipeline::TrainingState state = alone.initial_state();
  EXPECT_TRUE(state.generator.weights.empty() && state.generator.moving.empty());
  std::vector<std::string> names;
  for (const auto& tensor : alone.gan().contributions(model::SlotKind::kFit).tensors) {
    names.push_back(tensor.name);
  }
  EXPECT_THAT(names, testing::AllOf(testing::Contains("network/kind/kernel"),
                                    testing::Contains("loss/is_pion"),
                                    testing::Not(testing::Contains("empty_images"))));
  EXPECT_TRUE(alone.gan().contributions(model::SlotKind::kG).tensors.empty());
}

TEST(SupervisedTask, LearnsTheEventsThatItIsShown) {
  const config::Topology topology = zoo_topology(
      "particle_12", {"train.micro_batch=8", "train.micro_batches=2",
                      "train.optimiser.network=adam", "train.learning_rate.network=3e-3"});
  Alone alone(topology, model::make_cpu_backend());
  pipeline::TrainingState state = alone.initial_state();
  const std::vector<pipeline::MicroBatch> events{alone.micro_batch(0, 1), alone.micro_batch(1, 2)};
  const auto step = [&] {
    const pipeline::StepRecord record = alone.reduce_step(state, events);
    const auto& gan = alone.gan();
    const double loss = pipeline::step_losses(gan.contributions(model::SlotKind::kFit), record)[0];
    CHECK(pipeline::apply(gan, alone.options(), record, state).ok());
    return loss;
  };
  const double before = step();
  for (int i = 0; i < 60; ++i) step();
  EXPECT_GT(before, 0.3);
  EXPECT_LT(step(), 0.2 * before);
}

}  // namespace
}  // namespace troupe::training_test
