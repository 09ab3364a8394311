// Batch norm whose statistics all micro-batches of a step share, in double: against one micro-batch
// of all events, gradients against central differences of the loss over all of them, and steps
// against PyTorch (tests/oracle/shared_norm_case.py).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "model/shared_statistics.h"
#include "tests/model/example_networks.h"
#include "tests/support/fixture_vector.h"

namespace troupe::model {
namespace {

using Role = ContributionTensor::Role;

constexpr std::int64_t kEvents = 6;
constexpr std::int64_t kCells = 8;

// Two batch norms in each network, of an image and of features.
GanDescription example(bool sync) {
  const BatchNorm norm{0.99, 1e-3, sync};
  GanDescription gan;
  gan.latent.size = 3;
  gan.generator = {"generator", Shape::features(3), {}, {}};
  gan.generator.layers = {layer("dense", Dense{16}),
                          layer("first", norm),
                          layer("bend", Activation{ActivationKind::kTanh}),
                          layer("grid", Reshape{Shape::image({2, 2, 2}, 2)}),
                          layer("second", norm),
                          layer("image", convolution(1, {1, 1, 1}))};
  gan.discriminator = {"discriminator", Shape::image({2, 2, 2}, 1), {}, {}};
  gan.discriminator.layers = {layer("conv", convolution(2, {2, 2, 1})),
                              layer("first", norm),
                              layer("bend", Activation{ActivationKind::kTanh}),
                              layer("flat", Flatten{}),
                              layer("hidden", Dense{4}),
                              layer("second", norm),
                              layer("bent", Activation{ActivationKind::kTanh}),
                              layer("score", Dense{1}),
                              layer("sum", Sum{}, "input")};
  gan.discriminator.outputs = {"score", "sum"};
  gan.losses = {{"score", LossKind::kLogisticCrossentropy, Target::kLabel, 1.5},
                {"sum", LossKind::kMeanSquaredError, Target::kEcal, 0.25}};
  gan.flip_probability = 0.0;
  gan.judges_both = true;
  return gan;
}

// Six events in micro-batches, computed one after the other by so many streams in turns.
template <class T>
class Steps {
 public:
  explicit Steps(const GanDescription& description, std::int64_t micro_batches,
                 std::size_t streams = 1, double brightness = 3.0)
      : batch_(kEvents / micro_batches),
        micro_batches_(micro_batches),
        backend_(make_reference_backend(sizeof(T) == sizeof(float) ? DataType::kFloat32
                                                                   : DataType::kFloat64)),
        gan_(Gan::compile(description, *backend_, batch_).value()) {
    for (std::size_t i = 0; i < streams; ++i) {
      streams_.push_back(std::make_unique<GanStream>(*gan_));
    }
    for (const bool generator : {true, false}) {
      const ParameterLayout& layout = program(generator).parameters();
      std::vector<float> w(static_cast<std::size_t>(layout.weights_size));
      std::vector<float> m(static_cast<std::size_t>(layout.moving_size));
      initialise_parameters(layout, 7, generator ? 0 : 1, w.data(), m.data());
      weights(generator).assign(w.begin(), w.end());
      moving_[generator ? 0 : 1].assign(m.begin(), m.end());
      shared(generator).resize(static_cast<std::size_t>(kSharedArrays * layout.moving_size));
    }
    // All factors of a norm differ, and none of its sums is zero by chance.
    for (const bool generator : {true, false}) {
      for (std::size_t i = 0; i < weights(generator).size(); ++i) {
        weights(generator)[i] +=
            static_cast<T>(0.1 * runtime::random_normal({.seed = 5}, std::uint32_t(i)));
      }
    }
    for (std::uint32_t i = 0; i < kEvents * kCells; ++i) {
      images_.push_back(static_cast<float>(brightness + runtime::random_normal({.seed = 3}, i)));
    }
  }

  std::vector<T>& weights(bool generator) { return weights_[generator ? 0 : 1]; }
  const ContributionLayout& layout(SlotKind slot) const { return gan_->contributions(slot); }

  // Fakes of another step are made in front of each round of a step.
  void make_other_fakes() { makes_other_fakes_ = true; }

  // The means over all micro-batches, behind all rounds.
  std::vector<T> means(SlotKind slot) {
    const auto rounds = statistics_rounds(gan_->description(), slot);
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      const StatisticsRound& round = rounds[i];
      const std::vector<T> all = computed(slot, static_cast<int>(i));
      const std::int64_t arrays_of_generator =
          kShareArrays * gan_->generator().parameters().moving_size;
      const std::span<const T> given =
          round.of_generator
              ? std::span(all).first(static_cast<std::size_t>(arrays_of_generator))
              : std::span(all).subspan(static_cast<std::size_t>(arrays_of_generator));
      const auto& norms = gan_->shared_norms(round.of_generator);
      const SharedNorm& norm = *std::ranges::find(norms, round.layer, &SharedNorm::layer);
      const std::int64_t rows = batch_ * norm.cells * (slot == SlotKind::kDBoth ? 2 : 1);
      const std::span<T> found = shared(round.of_generator);
      if (round.forward) {
        take_statistics<T>(norm, rows, static_cast<std::uint32_t>(micro_batches_), given, found);
      } else {
        take_slopes<T>(norm, rows, given, found);
      }
    }
    return computed(slot, -1);
  }

  // The means of one tensor.
  std::vector<T> number(SlotKind slot, const std::string& name) {
    const int index = layout(slot).find(name);
    CHECK(index >= 0, name);
    const ContributionTensor& tensor = layout(slot).tensors[static_cast<std::size_t>(index)];
    const std::vector<T> all = means(slot);
    return {all.begin() + tensor.offset, all.begin() + tensor.offset + tensor.size};
  }

  double loss(SlotKind slot) {
    const std::vector<T> values = means(slot);
    double total = 0.0;
    for (const ContributionTensor& tensor : layout(slot).tensors) {
      if (tensor.role != Role::kLoss) continue;
      const auto& term = gan_->description().losses[static_cast<std::size_t>(tensor.index)];
      total += term.weight * static_cast<double>(values[static_cast<std::size_t>(tensor.offset)]);
    }
    return total;
  }

 private:
  const Program& program(bool generator) const {
    return generator ? gan_->generator() : gan_->discriminator();
  }
  std::vector<T>& shared(bool generator) { return shared_[generator ? 0 : 1]; }

  std::vector<T> computed(SlotKind slot, int round) {
    const SlotKind given = round < 0 ? slot : SlotKind::kStatistics;
    const auto size = static_cast<std::size_t>(layout(given).size);
    std::vector<T> means(size, T{0});
    for (std::int64_t i = 0; i < micro_batches_; ++i) {
      std::vector<T> values(size, static_cast<T>(NAN));
      std::vector<T> fakes(static_cast<std::size_t>(gan_->fake_elements()));
      const std::vector<float> conditions(static_cast<std::size_t>(batch_), 0.5F);
      const std::vector<GanMicroBatch> micro_batches{
          {{images_.data() + i * batch_ * kCells, conditions.data(), conditions.data(),
            conditions.data(), nullptr},
           static_cast<std::uint32_t>(i),
           fakes.data(),
           values.data()}};
      const GanParameters parameters{
          weights_[0].data(), moving_[0].data(), weights_[1].data(), moving_[1].data(), false,
          shared_[0].data(),  shared_[1].data()};
      GanStream& stream = *streams_[static_cast<std::size_t>(i) % streams_.size()];
      const GanWork work{parameters, micro_batches, {.seed = 11, .iteration = 2},
                         stream,     nullptr,       round};
      if (makes_other_fakes_) {
        gan_->prepare(SlotKind::kDFake, {parameters, micro_batches, {.seed = 12}, stream});
      }
      if (slot_access(slot).prepare_reads != 0) gan_->prepare(slot, work);
      gan_->learn(slot, work);
      for (std::size_t k = 0; k < size; ++k) {
        means[k] += values[k] / static_cast<T>(micro_batches_);
      }
    }
    return means;
  }

  const std::int64_t batch_, micro_batches_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<const Gan> gan_;
  std::vector<std::unique_ptr<GanStream>> streams_;
  std::array<std::vector<T>, 2> weights_, moving_, shared_;
  std::vector<float> images_;
  bool makes_other_fakes_ = false;
};

constexpr std::array kSlots{SlotKind::kDReal, SlotKind::kDFake, SlotKind::kG, SlotKind::kDBoth};

void expect_near(const std::vector<double>& found, const std::vector<double>& expected,
                 const ContributionLayout& layout) {
  ASSERT_EQ(found.size(), expected.size());
  for (const ContributionTensor& tensor : layout.tensors) {
    for (std::int64_t i = 0; i < tensor.size; ++i) {
      const auto at = static_cast<std::size_t>(tensor.offset + i);
      EXPECT_NEAR(found[at], expected[at], 1e-11) << tensor.name << " " << i;
    }
  }
}

TEST(SharedStatistics, StepOverMicroBatchesIsThatOfOneOfAllTheirEvents) {
  Steps<double> apart(example(true), 3), together(example(false), 1);
  expect_near(apart.means(SlotKind::kDReal), together.means(SlotKind::kDReal),
              apart.layout(SlotKind::kDReal));
  // Without rounds each micro-batch is normalised by itself, to other gradients.
  Steps<double> alone(example(false), 3);
  EXPECT_GT(std::abs(alone.means(SlotKind::kDReal)[0] - together.means(SlotKind::kDReal)[0]), 1e-4);
}

TEST(SharedStatistics, OneMicroBatchSharesWithItselfAlone) {
  Steps<double> shared(example(true), 1), plain(example(false), 1);
  for (const SlotKind slot : kSlots) {
    SCOPED_TRACE(slot_name(slot));
    expect_near(shared.means(slot), plain.means(slot), shared.layout(slot));
  }
}

TEST(SharedStatistics, GradientsAreThoseOfTheLossOverAllMicroBatches) {
  Steps<double> steps(example(true), 3);
  for (const SlotKind slot : kSlots) {
    const std::vector<double> found = steps.means(slot);
    std::vector<double>& weights = steps.weights(slot == SlotKind::kG);
    double largest = 0.0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double weight = weights[i], step = 1e-5;
      weights[i] = weight + step;
      const double above = steps.loss(slot);
      weights[i] = weight - step;
      const double below = steps.loss(slot);
      weights[i] = weight;
      EXPECT_NEAR(found[i], (above - below) / (2.0 * step), 1e-8)
          << slot_name(slot) << " weight " << i;
      largest = std::max(largest, std::abs(found[i]));
    }
    EXPECT_GT(largest, 0.05) << slot_name(slot);
  }
}

TEST(SharedStatistics, StepsOverMicroBatchesAgreeWithPyTorchOverAllTheirEvents) {
  Steps<double> steps(example(true), 3);
  std::ifstream file(std::string(TROUPE_SOURCE_DIR) + "/tests/oracle/shared_norm.txt");
  ASSERT_TRUE(file) << "missing fixture; make it with tests/oracle/shared_norm_case.py";
  SlotKind slot = SlotKind::kG;
  std::vector<double> gradient, statistics;
  int compared = 0;
  for (std::string line; std::getline(file, line); ++compared) {
    std::istringstream words(line);
    std::string word, name;
    words >> word >> name;
    if (word == "slot") {
      const auto found = std::ranges::find(kSlots, name, slot_name);
      ASSERT_NE(found, kSlots.end()) << name;
      slot = *found;
      gradient.clear();
      statistics.clear();
      const std::vector<double> means = steps.means(slot);
      for (const ContributionTensor& tensor : steps.layout(slot).tensors) {
        const bool moves =
            tensor.role == Role::kGeneratorMoving || tensor.role == Role::kDiscriminatorMoving;
        if (tensor.role == Role::kLoss || tensor.role == Role::kEmptyImages) continue;
        std::vector<double>& into = moves ? statistics : gradient;
        const auto from = means.begin() + tensor.offset;
        into.insert(into.end(), from, from + tensor.size);
      }
    } else if (word == "loss") {
      double loss = 0.0;
      words >> loss;
      EXPECT_NEAR(steps.number(slot, "loss/" + name)[0], loss, 1e-10 * loss) << line;
    } else {
      std::uint32_t number = 0;
      FixtureVector want;
      words >> number >> want;
      expect_vector(want, number == 0 ? gradient : statistics, number, 1e-9 * want.norm,
                    slot_name(slot) + " " + name);
    }
  }
  EXPECT_EQ(compared, 4 * 5);
}

TEST(SharedStatistics, StreamThatGoesOnFindsWhatOneThatBeginsAnewFinds) {
  Steps<double> anew(example(true), 3, 1), goes_on(example(true), 3, 3);
  for (const SlotKind slot : kSlots) EXPECT_EQ(anew.means(slot), goes_on.means(slot));
}

// The pass that a step of the generator keeps in the stream is lost to the fakes.
TEST(SharedStatistics, StepBeginsAnewWhereFakesOfAnotherAreMadeInItsMidst) {
  Steps<double> alone(example(true), 3, 3), disturbed(example(true), 3, 3);
  disturbed.make_other_fakes();
  for (const SlotKind slot : kSlots) EXPECT_EQ(disturbed.means(slot), alone.means(slot));
}

// Squares of means near 3000 lose all that a variance near 1 has of them in float; what is left of
// the means once one is known does not.
TEST(SharedStatistics, VarianceBesideALargeMeanLosesLittleOnceTheMeanIsKnown) {
  const char* const name = "discriminator/first/moving_variance";
  Steps<float> steps(example(true), 3, 3, 3000.0);
  Steps<double> exact(example(true), 3, 3, 3000.0);
  const std::vector<double> expected = exact.number(SlotKind::kDReal, name);
  steps.number(SlotKind::kDReal, name);
  const std::vector<float> found = steps.number(SlotKind::kDReal, name);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(found[i]) / expected[i], 1.0, 0.01) << i;
  }
}

TEST(SharedStatistics, RoundsStandInFrontOfTheStepThatTheyAreOf) {
  GanDescription gan = example(true);
  std::get<BatchNorm>(gan.generator.layers[1].kind).sync = false;
  const auto schedule = with_rounds(gan, {SlotKind::kDReal, SlotKind::kG});
  ASSERT_EQ(schedule.size(), 4u + 1u + 6u + 1u);
  const auto expect_work = [&](std::uint32_t place, SlotKind slot, int round,
                               std::uint32_t number) {
    const ScheduledWork work = work_at(schedule, place);
    EXPECT_EQ(work.slot, slot) << place;
    EXPECT_EQ(work.round, round) << place;
    EXPECT_EQ(work.number, number) << place;
  };
  expect_work(0, SlotKind::kDReal, 0, 0);
  expect_work(3, SlotKind::kDReal, 3, 0);
  expect_work(4, SlotKind::kDReal, -1, 0);
  expect_work(5, SlotKind::kG, 0, 1);
  expect_work(10, SlotKind::kG, 5, 1);
  expect_work(11, SlotKind::kG, -1, 1);
  std::vector<int> layers;
  for (const StatisticsRound& round : statistics_rounds(gan, SlotKind::kG)) {
    layers.push_back(round.layer);
  }
  EXPECT_EQ(layers, (std::vector{4, 1, 5, 5, 1, 4}));
}

}  // namespace
}  // namespace troupe::model
