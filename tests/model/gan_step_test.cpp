// The steps of a Gan in double: gradients against central differences of the losses that they
// belong to, and what a step on real and generated events together is made of.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/gan.h"
#include "tests/model/example_networks.h"

namespace troupe::model {
namespace {

using Role = ContributionTensor::Role;

constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kCells = 8;

// Images of 2 x 2 x 2 cells, and a smooth discriminator, which the finite form of a gradient
// penalty differentiates best.
GanDescription example(LossKind kind) {
  GanDescription gan;
  gan.latent.size = 3;
  gan.generator = {"generator", Shape::features(3), {}, {}};
  gan.generator.layers = {layer("dense", Dense{8}),
                          layer("bend", Activation{ActivationKind::kTanh}),
                          layer("image", Reshape{Shape::image({2, 2, 2}, 1)})};
  gan.discriminator = {"discriminator", Shape::image({2, 2, 2}, 1), {}, {}};
  gan.discriminator.layers = {layer("flat", Flatten{}), layer("hidden", Dense{5}),
                              layer("bend", Activation{ActivationKind::kTanh}),
                              layer("score", Dense{1}), layer("sum", Sum{}, "input")};
  gan.discriminator.outputs = {"score", "sum"};
  gan.losses = {{"score", kind, Target::kLabel, 1.5},
                {"sum", LossKind::kMeanSquaredError, Target::kEcal, 0.25}};
  gan.judges_both = true;
  return gan;
}

GanDescription with_penalty(double weight) {
  GanDescription gan = example(LossKind::kWasserstein);
  gan.losses.push_back({"score", LossKind::kGradientPenalty, Target::kLabel, weight});
  return gan;
}

// The discriminator is told the energy.
GanDescription told(GanDescription gan) {
  NetworkDescription& judge = gan.discriminator;
  judge.conditions = {kEnergyCondition};
  judge.layers.insert(judge.layers.begin(), layer("asked", Dense{4}, "conditions"));
  judge.layers[1].input = "input";
  judge.layers.insert(judge.layers.begin() + 2,
                      layer("both", Concatenate{{"asked", "conditions"}}));
  return gan;
}

// The generator makes two columns from its bent features, which the discriminator reads in another
// order: one with the cells, and both behind them.
GanDescription making_columns(GanDescription gan) {
  gan.generator.makes = {{"leak", "leakage"}, {"depth", "depth"}};
  auto& layers = gan.generator.layers;
  layers.insert(layers.end() - 1, {layer("leakage", Dense{1}), layer("deep", Dense{1}, "bend"),
                                   layer("depth", Activation{ActivationKind::kSoftplus})});
  layers.back().input = "bend";
  NetworkDescription& judge = gan.discriminator;
  judge.columns = {"depth", "leak"};
  judge.layers[1] = layer("joined", Concatenate{{"columns"}});
  judge.layers.insert(judge.layers.begin() + 2, layer("hidden", Dense{5}));
  judge.layers.insert(judge.layers.begin() + 4, layer("beside", Multiply{"spread"}));
  judge.layers.insert(judge.layers.begin(), layer("spread", Dense{5}, "columns"));
  judge.layers[1].input = "input";
  return gan;
}

// Fakes have energies of their own, which are others than those of the data.
GanDescription drawn(GanDescription gan) {
  gan.fake_conditions = FakeConditions::kUniform;
  gan.fake_energy = {2.0, 4.0};
  return gan;
}

class Steps {
 public:
  explicit Steps(const GanDescription& description)
      : backend_(make_reference_backend(DataType::kFloat64)),
        gan_(Gan::compile(description, *backend_, kBatch).value()),
        stream_(*gan_) {
    const auto begin = [](const Program& program, int number, std::vector<double>& weights,
                          std::vector<double>& moving) {
      const ParameterLayout& layout = program.parameters();
      std::vector<float> w(static_cast<std::size_t>(layout.weights_size));
      std::vector<float> m(static_cast<std::size_t>(layout.moving_size));
      initialise_parameters(layout, 7, number, w.data(), m.data());
      weights.assign(w.begin(), w.end());
      moving.assign(m.begin(), m.end());
    };
    begin(gan_->generator(), 0, generator_, generator_moving_);
    begin(gan_->discriminator(), 1, discriminator_, discriminator_moving_);
    for (std::uint32_t i = 0; i < kBatch * kCells; ++i) {
      images_.push_back(static_cast<float>(runtime::random_normal({.seed = 3}, i)));
    }
  }

  // The data's: numbers of the first column, then those of the next.
  std::vector<float>& columns() { return columns_; }

  const ContributionLayout& layout(SlotKind slot) const { return gan_->contributions(slot); }
  std::vector<double>& weights(SlotKind slot) {
    return slot == SlotKind::kG ? generator_ : discriminator_;
  }

  std::vector<double> contributions(SlotKind slot) {
    std::vector<double> values(static_cast<std::size_t>(layout(slot).size), NAN);
    std::vector<double> fakes(static_cast<std::size_t>(gan_->fake_elements()));
    const std::vector<float> conditions{0.5F, 1.0F, 1.5F};
    const GanParameters parameters{generator_.data(), generator_moving_.data(),
                                   discriminator_.data(), discriminator_moving_.data()};
    const std::vector<GanMicroBatch> micro_batches{
        {{images_.data(), conditions.data(), conditions.data(), conditions.data(), columns_.data()},
         0,
         fakes.data(),
         values.data()}};
    const GanWork work{parameters, micro_batches, {.seed = 11, .iteration = 2}, stream_};
    if (slot_access(slot).prepare_reads != 0) gan_->prepare(slot, work);
    gan_->learn(slot, work);
    return values;
  }

  double loss(SlotKind slot) {
    const std::vector<double> values = contributions(slot);
    double total = 0.0;
    for (const ContributionTensor& tensor : layout(slot).tensors) {
      if (tensor.role != Role::kLoss) continue;
      const auto& term = gan_->description().losses[static_cast<std::size_t>(tensor.index)];
      total += term.weight * values[static_cast<std::size_t>(tensor.offset)];
    }
    return total;
  }
  double number(SlotKind slot, const std::string& name) {
    const int tensor = layout(slot).find(name);
    CHECK(tensor >= 0, name);
    const auto offset = layout(slot).tensors[static_cast<std::size_t>(tensor)].offset;
    return contributions(slot)[static_cast<std::size_t>(offset)];
  }

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<const Gan> gan_;
  GanStream stream_;
  std::vector<double> generator_, generator_moving_, discriminator_, discriminator_moving_;
  std::vector<float> images_, columns_{0.25F, 1.25F, 2.5F, -0.5F, 0.75F, 1.75F};
};

void expect_gradients(const GanDescription& description, double tolerance) {
  Steps steps(description);
  for (const SlotKind slot : kSlotKinds) {
    if (steps.layout(slot).size == 0) continue;
    const std::vector<double> found = steps.contributions(slot);
    std::vector<double>& weights = steps.weights(slot);
    double largest = 0.0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double weight = weights[i], step = 1e-5;
      weights[i] = weight + step;
      const double above = steps.loss(slot);
      weights[i] = weight - step;
      const double below = steps.loss(slot);
      weights[i] = weight;
      EXPECT_NEAR(found[i], (above - below) / (2.0 * step), tolerance)
          << slot_name(slot) << " weight " << i;
      largest = std::max(largest, std::abs(found[i]));
    }
    EXPECT_GT(largest, 0.05) << slot_name(slot);
  }
}

TEST(GanStep, GradientsOfALeastSquaresLossAreThoseOfItsLosses) {
  expect_gradients(example(LossKind::kMeanSquaredError), 1e-8);
}

TEST(GanStep, GradientsOfAHingeLossAreThoseOfItsLosses) {
  expect_gradients(example(LossKind::kHinge), 1e-8);
}

TEST(GanStep, GradientsOfWassersteinsLossAreThoseOfItsLosses) {
  expect_gradients(example(LossKind::kWasserstein), 1e-8);
}

// The finite form is off by the square of its step, 2^-10 of the event's size. A term that is left
// out would be off by whole units.
TEST(GanStep, GradientsOfAPenaltyAreThoseOfItsValue) { expect_gradients(with_penalty(10.0), 2e-5); }

TEST(GanStep, GradientsOfADiscriminatorThatIsToldTheEnergyAreThoseOfItsLosses) {
  expect_gradients(told(example(LossKind::kHinge)), 1e-8);
  expect_gradients(told(with_penalty(10.0)), 2e-5);
}

TEST(GanStep, GradientsFlowThroughTheColumnsThatAGeneratorMakes) {
  expect_gradients(making_columns(example(LossKind::kHinge)), 1e-8);
  // Nothing but the columns is judged, so that no gradient comes from the image.
  GanDescription gan = making_columns(example(LossKind::kWasserstein));
  gan.discriminator.layers = {layer("score", Dense{1}, "columns"), layer("sum", Sum{}, "input")};
  gan.losses[1].weight = 0.0;
  expect_gradients(gan, 1e-8);
}

// The data's columns are those of the events, and the generator's are judged as they are made, in
// the discriminator's order.
TEST(GanStep, EachEventIsJudgedByItsOwnColumns) {
  GanDescription gan = making_columns(example(LossKind::kMeanSquaredError));
  gan.flip_probability = 0.0;
  gan.discriminator.layers = {layer("score", Dense{1}, "columns"), layer("sum", Sum{}, "input")};
  gan.generator.layers[3] = layer("deep", Slice{Axis::kChannels, 0, 1}, "bend");
  gan.generator.layers[4] = layer("depth", Activation{}, "deep");
  Steps steps(gan);
  // dense 3 x 8, then the leakage's kernel and bias: the depth is tanh(0.5), the leakage 3.
  std::vector<double>& g = steps.weights(SlotKind::kG);
  ASSERT_EQ(g.size(), 24U + 8U + 8U + 1U);
  std::ranges::fill(g, 0.0);
  g[24] = 0.5;
  g.back() = 3.0;
  const double depth = std::tanh(0.5);
  std::vector<double>& d = steps.weights(SlotKind::kDReal);
  d = {2.0, 10.0, 0.0};  // of depth, leak, and the bias
  const double fake = 2.0 * depth + 30.0;
  EXPECT_NEAR(steps.number(SlotKind::kDFake, "loss/score"), fake * fake, 1e-9);
  EXPECT_NEAR(steps.number(SlotKind::kG, "loss/score"), (fake - 1.0) * (fake - 1.0), 1e-9);
  double real = 0.0;
  for (const double score : {0.5 - 5.0, 2.5 + 7.5, 5.0 + 17.5}) {
    real += (score - 1.0) * (score - 1.0) / 3.0;
  }
  EXPECT_NEAR(steps.number(SlotKind::kDReal, "loss/score"), real, 1e-9);
  EXPECT_NEAR(steps.number(SlotKind::kDBoth, "loss/score"), 0.5 * (real + fake * fake), 1e-9);
}

// Each half has the conditions of its own events.
TEST(GanStep, FakesAreJudgedByWhatTheyWereAskedFor) {
  GanDescription gan = drawn(told(example(LossKind::kHinge)));
  gan.flip_probability = 0.0;
  // It sees nothing else, and is to tell what it was told.
  NetworkDescription& judge = gan.discriminator;
  judge.layers = {layer("score", Dense{1}, "conditions"), layer("sum", Sum{}, "input")};
  gan.losses[0].kind = LossKind::kMeanSquaredError;
  gan.losses[0].target = Target::kEnergy;
  Steps steps(gan);
  std::vector<double>& weights = steps.weights(SlotKind::kDFake);
  ASSERT_EQ(weights.size(), 2U);
  weights = {1.0, 0.0};
  for (const SlotKind slot : {SlotKind::kDReal, SlotKind::kDFake, SlotKind::kDBoth, SlotKind::kG}) {
    EXPECT_EQ(steps.number(slot, "loss/score"), 0.0) << slot_name(slot);
  }
  steps.weights(SlotKind::kDFake) = {0.0, 0.0};
  const double real = steps.number(SlotKind::kDReal, "loss/score");
  EXPECT_NEAR(real, (0.25 + 1.0 + 2.25) / 3.0, 1e-12);
  EXPECT_GE(steps.number(SlotKind::kDFake, "loss/score"), 4.0);
  EXPECT_NEAR(steps.number(SlotKind::kDBoth, "loss/score"),
              0.5 * (real + steps.number(SlotKind::kDFake, "loss/score")), 1e-12);
}

TEST(GanStep, PenaltyOfALinearDiscriminatorIsThatOfItsWeights) {
  GanDescription gan = with_penalty(10.0);
  gan.discriminator.layers = {layer("flat", Flatten{}), layer("score", Dense{1}),
                              layer("sum", Sum{}, "input")};
  Steps steps(gan);
  double square = 0.0;
  for (std::size_t i = 0; i < kCells; ++i) {
    square += steps.weights(SlotKind::kDFake)[i] * steps.weights(SlotKind::kDFake)[i];
  }
  const double excess = std::sqrt(square) - 1.0;
  for (const SlotKind slot : {SlotKind::kDFake, SlotKind::kDBoth}) {
    EXPECT_NEAR(steps.number(slot, "loss/score_penalty"), excess * excess, 1e-12);
  }
  EXPECT_EQ(steps.number(SlotKind::kDReal, "loss/score_penalty"), 0.0);
  EXPECT_EQ(steps.number(SlotKind::kG, "loss/score_penalty"), 0.0);
}

// The passes of the penalty leave nothing behind that the step itself reads.
TEST(GanStep, PenaltyLeavesTheOtherLossesAndTheFakesAsTheyAre) {
  Steps with(with_penalty(10.0)), without(example(LossKind::kWasserstein));
  for (const SlotKind slot : {SlotKind::kDReal, SlotKind::kDFake, SlotKind::kDBoth}) {
    for (const char* name : {"loss/score", "loss/sum"}) {
      EXPECT_EQ(with.number(slot, name), without.number(slot, name)) << slot_name(slot) << name;
    }
  }
  EXPECT_NE(with.contributions(SlotKind::kDFake)[0], without.contributions(SlotKind::kDFake)[0]);
}

TEST(GanStep, PenaltyIsOfWhatFakesWereAskedForAndLeavesItToTheStep) {
  Steps with(drawn(told(with_penalty(10.0)))),
      without(drawn(told(example(LossKind::kWasserstein))));
  const double penalty = with.number(SlotKind::kDFake, "loss/score_penalty");
  EXPECT_EQ(with.number(SlotKind::kDFake, "loss/score"),
            without.number(SlotKind::kDFake, "loss/score"));
  // The step before leaves the data's energies where the penalty reads its own.
  with.contributions(SlotKind::kDReal);
  EXPECT_EQ(with.number(SlotKind::kDBoth, "loss/score_penalty"), penalty);
}

TEST(GanStep, PenaltyIsATermWithANameOfItsOwn) {
  GanDescription gan = with_penalty(10.0);
  EXPECT_EQ(penalty_fault(gan), "");
  gan.discriminator.layers[4].name = gan.discriminator.outputs[1] = gan.losses[1].output =
      "score_penalty";
  EXPECT_NE(penalty_fault(gan).find("rename it"), std::string::npos);
  const auto backend = make_reference_backend(DataType::kFloat64);
  EXPECT_FALSE(Gan::compile(gan, *backend, kBatch).ok());
}

void expect_mean_of_halves(GanDescription gan) {
  gan.flip_probability = 0.0;
  Steps steps(gan);
  const std::vector<double> real = steps.contributions(SlotKind::kDReal),
                            fake = steps.contributions(SlotKind::kDFake),
                            both = steps.contributions(SlotKind::kDBoth);
  ASSERT_EQ(both.size(), fake.size());
  for (std::size_t i = 0; i < real.size(); ++i) {
    EXPECT_NEAR(both[i], 0.5 * (real[i] + fake[i]), 1e-14) << i;
  }
}

TEST(GanStep, OnBothIsTheMeanOfItsHalvesWhereEventsAreApart) {
  expect_mean_of_halves(example(LossKind::kHinge));
  GanDescription gan = drawn(told(example(LossKind::kHinge)));
  expect_mean_of_halves(gan);
  gan.discriminator.conditions.push_back(kEnergyCondition);  // a second number of each event
  expect_mean_of_halves(gan);
  expect_mean_of_halves(making_columns(drawn(example(LossKind::kHinge))));
}

TEST(GanStep, OnBothIsOneBatchForBatchNorm) {
  GanDescription gan = example(LossKind::kBinaryCrossentropy);
  gan.discriminator.layers[2] = layer("bend", BatchNorm{});
  Steps steps(gan);
  const auto of = [&](const char* name) {
    std::vector<double> values;
    for (const SlotKind slot : {SlotKind::kDReal, SlotKind::kDFake, SlotKind::kDBoth}) {
      values.push_back(steps.number(slot, name));
    }
    return values;
  };
  const auto mean = of("discriminator/bend/moving_mean");
  EXPECT_NEAR(mean[2], 0.5 * (mean[0] + mean[1]), 1e-12);
  // Unbiased variances of 3 and 3 events, and of all 6.
  const auto variance = of("discriminator/bend/moving_variance");
  const double apart = mean[0] - mean[1];
  EXPECT_NEAR(variance[2], (2.0 * variance[0] + 2.0 * variance[1] + 1.5 * apart * apart) / 5.0,
              1e-12);
}

}  // namespace
}  // namespace troupe::model
