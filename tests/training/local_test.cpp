// Workers that train alone between the steps of an outer optimiser: against the papers' formulas,
// and against training without them where both are the same.

#include <cmath>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/run/head_run.h"
#include "model/rounded_sum.h"
#include "model/streams.h"
#include "pipeline/checkpoint/checkpoint.h"
#include "pipeline/checkpoint/checkpoint_folder.h"
#include "pipeline/steps/outer_optimiser.h"
#include "pipeline/steps/strategy.h"
#include "pipeline/steps/worker_tensors.h"
#include "runtime/base/random.h"
#include "tests/support/temporary_folder.h"
#include "tests/training/alone.h"

namespace troupe::training_test {
namespace {

using pipeline::TrainingState;

// Sutskever's form of Nesterov's momentum, as PyTorch has it and DiLoCo takes it, in double.
TEST(OuterOptimiser, IsNesterovsMomentumOverTheMeanChange) {
  const pipeline::OuterOptions options{pipeline::OuterKind::kNesterov, 0.7, 0.9};
  std::vector<float> weights{1.0f, -2.0f, 0.0f}, velocity(3);
  std::vector<double> w{1.0, -2.0, 0.0}, m(3);
  for (int step = 1; step <= 20; ++step) {
    const std::vector<float> change{0.01f * static_cast<float>(step), -0.5f, 1e-6f};
    pipeline::outer_update(options, change, weights, velocity);
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = 0.9 * m[i] + static_cast<double>(change[i]);
      w[i] -= 0.7 * (static_cast<double>(change[i]) + 0.9 * m[i]);
      EXPECT_NEAR(weights[i], w[i], 3e-6 * std::abs(w[i]) + 1e-12) << "step " << step;
      EXPECT_NEAR(velocity[i], m[i], 3e-6 * std::abs(m[i])) << "step " << step;
    }
  }
}

TEST(OuterOptimiser, TakesTheMeanOfTheWorkersWithRateOneAndWithoutMomentum) {
  const std::vector<float> a{0.75f, 1.5f}, b{1.25f, -0.5f};
  std::vector<float> weights{1.0f, 0.25f}, velocity(2), change(2);
  for (std::size_t i = 0; i < 2; ++i) {
    change[i] = 0.5f * ((weights[i] - a[i]) + (weights[i] - b[i]));
  }
  pipeline::outer_update({pipeline::OuterKind::kNesterov, 1.0, 0.0}, change, weights, velocity);
  EXPECT_EQ(weights, (std::vector<float>{1.0f, 0.5f}));
}

TEST(LocalStrategy, WorkersShareOutAnIterationAndTheirIterationsAreNumberedAsThoseOfAnyRun) {
  pipeline::TrainingOptions options;
  options.micro_batch = 3;
  options.micro_batches = 8;
  options.strategy = {pipeline::StrategyKind::kLocal, 4, 5, {}};
  options = pipeline::options_between_members(options, {});
  EXPECT_EQ(options.micro_batches, 4u);
  EXPECT_EQ(options.micro_batch, 5u * 2 * 3);
  EXPECT_EQ(options.schedule, std::vector{model::SlotKind::kWorkers});
  options.iterations_per_epoch = 7;
  const auto own = pipeline::options_of_worker(options);
  EXPECT_EQ(own.micro_batches, 2u);
  EXPECT_EQ(own.micro_batch, 3u);
  EXPECT_EQ(own.schedule.size(), 4u);
  EXPECT_EQ(own.iterations_per_epoch, 35u);
}

TEST(TreeStrategy, WorkersAreThoseOfLocalInPartsOfAMicroBatchEach) {
  pipeline::TrainingOptions options;
  options.micro_batch = 3;
  options.micro_batches = 8;
  options.strategy = {pipeline::StrategyKind::kTree, 2, 5, {}};
  options = pipeline::options_between_members(options, {});
  EXPECT_EQ(options.micro_batches, 2u);
  EXPECT_EQ(options.micro_batch, 5u * 4 * 3);
  EXPECT_EQ(options.parts(), 4u);
  EXPECT_EQ(options.all_parts(), 8u);
  EXPECT_EQ(options.events_of_part(), 5u * 3);
  options.short_iteration = {7, 1};
  EXPECT_EQ(options.short_iteration_in_parts().micro_batches, 4u);
  EXPECT_EQ(pipeline::options_of_worker(options).parts(), 1u);
  EXPECT_EQ(pipeline::options_of_worker(options).micro_batches, 4u);
}

// A step of four workers of the toy whose changes are summed in int8.
class RoundedChanges : public ::testing::Test {
 protected:
  RoundedChanges() {
    for (std::uint32_t worker = 0; worker < options_.micro_batches; ++worker) {
      auto& values = changes_.emplace_back(static_cast<std::size_t>(tensors_.size));
      runtime::fill_normal({.seed = 21, .micro_batch = worker}, values.data(),
                           static_cast<std::uint32_t>(values.size()));
      for (std::size_t i = 0; i < tensors_.tensors.size(); ++i) {
        const auto& tensor = tensors_.tensors[i];
        const auto first = values.begin() + tensor.offset;
        const float size = std::ldexp(1.0f, -static_cast<int>(i % 9));
        std::for_each(first, first + tensor.size, [&](float& value) { value *= size; });
      }
    }
  }

  pipeline::StepRecord attempt(std::uint32_t number, const std::vector<std::int16_t>& scales) {
    pipeline::StepRecord record;
    record.header.attempt = number;
    record.header.exponents.assign(tensors_.tensors.size(), model::kNoExponent);
    record.header.events = options_.events_in(0);
    record.scales = scales;
    record.front = sums_.front;
    record.sums = runtime::Buffer::zeroed(sums_.bytes());
    for (std::uint32_t worker = 0; worker < options_.micro_batches; ++worker) {
      add_micro_batch(tensors_, changes_[worker], worker, options_.micro_batches, options_.seed,
                      scales, sums_.parts_of(record.sums), record.header);
    }
    return record;
  }
  std::vector<std::int16_t> scales_after(const pipeline::StepRecord& record) const {
    return pipeline::scales_after(record.scales, record.header, options_.micro_batches,
                                  pipeline::rounded_tensors(tensors_, options_));
  }
  // The mean over the workers, with each change rounded as model/rounded_sum.h has it.
  double mean_change(const model::ContributionTensor& tensor, std::size_t element) const {
    double largest = 0.0;
    for (const auto& values : changes_) {
      for (std::int64_t i = 0; i < tensor.size; ++i) {
        const float value = values[static_cast<std::size_t>(tensor.offset + i)];
        largest = std::max(largest, std::abs(static_cast<double>(value)));
      }
    }
    const double unit = std::exp2(std::floor(std::log2(largest)) + 1 - 6);
    double sum = 0.0;
    for (std::uint32_t worker = 0; worker < changes_.size(); ++worker) {
      const double u =
          runtime::random_uniform({options_.seed, worker, 0, 0, model::kRoundingStream},
                                  static_cast<std::uint32_t>(element));
      sum += std::floor(static_cast<double>(changes_[worker][element]) / unit + u);
    }
    return sum * unit / static_cast<double>(changes_.size());
  }

  Alone alone_{zoo_topology("toy", {"train.strategy={kind: local, workers: 4, steps: 2, "
                                    "precision: int8}"}),
               model::make_cpu_backend()};
  const pipeline::TrainingOptions options_ =
      pipeline::options_between_members(alone_.options(), {});
  const model::ContributionLayout& tensors_ = alone_.gan().contributions(model::SlotKind::kWorkers);
  const pipeline::SumLayout sums_ = pipeline::sum_layout(tensors_, options_.gradient_sums());
  std::vector<std::vector<float>> changes_;  // by worker: all that it contributes
};

TEST_F(RoundedChanges, GoThroughTheOuterOptimiserAsTheirMeanAndTheRestStaysExact) {
  TrainingState state = pipeline::initial_state(alone_.gan(), options_, "", {});
  const pipeline::StepRecord measured = attempt(0, state.scales[0]);
  EXPECT_TRUE(measured.header.flagged) << "the first step only measures";
  const pipeline::StepRecord record = attempt(1, scales_after(measured));
  ASSERT_FALSE(record.header.flagged);
  const TrainingState before = state;
  ASSERT_TRUE(pipeline::apply(alone_.gan(), options_, record, state).ok());
  EXPECT_EQ(state.scales[0], record.scales);

  const pipeline::StateLayout layout(alone_.gan());
  std::size_t changes = 0, exact = 0;
  for (const auto& tensor : tensors_.tensors) {
    const auto old = pipeline::values_of(layout, before, tensor);
    const auto now = pipeline::values_of(layout, state, tensor);
    for (std::size_t i = 0; i < now.size(); ++i) {
      const std::size_t element = static_cast<std::size_t>(tensor.offset) + i;
      if (tensor.offset < sums_.front.size) {
        const double d = mean_change(tensor, element);
        EXPECT_NEAR(now[i], old[i] - 0.7 * (d + 0.9 * d), 1e-6 * (std::abs(old[i]) + 1.0))
            << tensor.name << " " << i;
        ++changes;
      } else {
        double sum = 0.0;
        for (const auto& values : changes_) sum += static_cast<double>(values[element]);
        EXPECT_NEAR(now[i], sum / 4.0, 1e-6 * std::abs(sum) + 1e-12) << tensor.name << " " << i;
        ++exact;
      }
    }
  }
  EXPECT_EQ(changes, static_cast<std::size_t>(sums_.front.size));
  EXPECT_GT(exact, 0u);
}

// The scale of a tensor is that of the step before; a change that it does not hold is measured and
// sent again, and nothing is cut off.
TEST_F(RoundedChanges, StepWhoseChangesHaveGrownIsMadeAgain) {
  const auto scales = scales_after(
      attempt(0, std::vector<std::int16_t>(tensors_.tensors.size(), model::kNoExponent)));
  EXPECT_FALSE(attempt(0, scales).header.flagged);
  for (auto& values : changes_) {
    for (float& value : values) value *= 4.0f;
  }
  const pipeline::StepRecord grown = attempt(0, scales);
  EXPECT_TRUE(grown.header.flagged);
  EXPECT_FALSE(attempt(1, scales_after(grown)).header.flagged);
}

struct Trained {
  TrainingState state;
  std::string hash;
};

// Trains with the actors, and reads the last checkpoint.
Trained trained(const TemporaryFolder& scratch, std::vector<std::string> overrides) {
  static int number = 0;
  overrides.insert(overrides.end(),
                   {"actors.validator.every=none", "data.synthetic.events=128", "train.seed=3"});
  const config::Topology topology = zoo_topology("gan3d_12", overrides);
  runtime::FileDisk disk;
  auto log = runtime::Log::silent();
  auto folder =
      launch::RunFolder::create(scratch.path() + "/run" + std::to_string(number++), disk).value();
  launch::HeadRunRequest request;
  request.loaded.topology = topology;
  request.data_folder = scratch.path() + "/data";
  const auto result = launch::run_locally(request, folder, disk, log);
  CHECK(result.ok(), result.ok() ? "" : result.error().message);
  CHECK(!result->error, result->error ? result->error->message : "");
  const auto files = pipeline::checkpoints_newest_first(disk.list(folder.checkpoints()).value());
  const std::string path = folder.checkpoints() + "/" + files.front();
  const auto found = pipeline::inspect_checkpoint(disk.read(path).value(), path);
  CHECK(found.ok(), found.ok() ? "" : found.error().message);
  return {found->state, found->state_hash.text()};
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  CHECK(a.size() == b.size() && !a.empty());
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

// A change is rounded to a float where a weight more than doubles or halves, and that is all.
TEST(LocalStrategy, OneWorkerWhoseChangeIsTakenAsItIsTrainsAsWithout) {
  const TemporaryFolder scratch;
  for (const char* optimiser : {"{kind: sgd, momentum: 0.9}", "adam"}) {
    const std::vector<std::string> common{
        "train.micro_batch=4", "train.micro_batches=1", "train.learning_rate={g: 1e-4, d: 1e-4}",
        std::string("train.optimiser={g: ") + optimiser + ", d: " + optimiser + "}"};
    auto plain = common, local = common, other = common;
    plain.emplace_back("train.iterations=12");
    local.insert(local.end(), {"train.iterations=4",
                               "train.strategy={kind: local, workers: 1, steps: 3, outer: {rate: "
                               "1, momentum: 0}}"});
    other.insert(other.end(), {"train.iterations=4",
                               "train.strategy={kind: local, workers: 1, steps: 3, outer: {rate: "
                               "0.5, momentum: 0}}"});
    const TrainingState a = trained(scratch, plain).state, b = trained(scratch, local).state;
    const TrainingState c = trained(scratch, other).state;
    EXPECT_LT(largest_difference(a.generator.weights, b.generator.weights), 2e-5) << optimiser;
    EXPECT_LT(largest_difference(a.discriminator.weights, b.discriminator.weights), 2e-5)
        << optimiser;
    EXPECT_LT(largest_difference(a.discriminator.moving, b.discriminator.moving), 2e-4)
        << optimiser;
    EXPECT_GT(largest_difference(a.generator.weights, c.generator.weights), 2e-4) << optimiser;
    EXPECT_EQ(a.generator.counters, b.generator.counters);
    EXPECT_EQ(a.discriminator.counters, b.discriminator.counters);
    EXPECT_EQ(b.iteration, 4u);
    EXPECT_EQ(b.ledger_events, 4u * 3 * 4);
  }
}

// With plain gradient descent the mean of what one step changes is the step along the mean
// gradient.
TEST(LocalStrategy, OneStepEachOfGradientDescentIsASynchronousStep) {
  const TemporaryFolder scratch;
  const std::vector<std::string> common{"train.micro_batch=2",
                                        "train.micro_batches=4",
                                        "train.iterations=3",
                                        "train.schedule=[d_both]",
                                        "train.optimiser={g: sgd, d: sgd}",
                                        "train.learning_rate={g: 1e-4, d: 1e-4}"};
  auto local = common;
  local.emplace_back(
      "train.strategy={kind: local, workers: 4, steps: 1, outer: {rate: 1, momentum: 0}}");
  auto half = common;
  half.emplace_back(
      "train.strategy={kind: local, workers: 4, steps: 1, outer: {rate: 0.5, momentum: 0}}");
  const TrainingState a = trained(scratch, common).state, b = trained(scratch, local).state;
  const TrainingState c = trained(scratch, half).state;
  EXPECT_LT(largest_difference(a.discriminator.weights, b.discriminator.weights), 1e-6);
  EXPECT_GT(largest_difference(a.discriminator.weights, c.discriminator.weights), 1e-5);
  EXPECT_EQ(b.epoch_loss_steps, a.epoch_loss_steps) << "the generator has no steps";
}

TEST(TreeStrategy, HashIsThatOfLocalWhicheverReplicasHaveTheParts) {
  const TemporaryFolder scratch;
  const auto hash = [&](const char* strategy, int replicas, int threads) {
    return trained(scratch, {"train.micro_batch=2", "train.micro_batches=8", "train.iterations=4",
                             "train.epochs=20", "actors.replica.count=" + std::to_string(replicas),
                             "actors.replica.threads=" + std::to_string(threads),
                             std::string("train.strategy={steps: 2, ") + strategy + "}"})
        .hash;
  };
  for (const char* precision : {"exact", "int8"}) {
    const std::string with = std::string(", precision: ") + precision;
    const std::string expected = hash(("kind: local, workers: 2" + with).c_str(), 1, 1);
    const std::string tree = "kind: tree, sites: 2" + with;
    for (const int replicas : {1, 2, 3, 4, 8}) {
      EXPECT_EQ(hash(tree.c_str(), replicas, 1), expected) << replicas << " " << precision;
    }
    EXPECT_EQ(hash(tree.c_str(), 3, 2), expected) << precision;
  }
}

class LocalHash : public ::testing::TestWithParam<const char*> {};

TEST_P(LocalHash, IsTheSameForAnyReplicasAndThreads) {
  const TemporaryFolder scratch;
  const auto hash = [&](int replicas, int threads, int workers = 4) {
    return trained(scratch,
                   {"train.micro_batch=2", "train.micro_batches=8", "train.iterations=4",
                    "train.epochs=20", "actors.replica.count=" + std::to_string(replicas),
                    "actors.replica.threads=" + std::to_string(threads),
                    "train.strategy={kind: local, steps: 2, precision: " + std::string(GetParam()) +
                        ", workers: " + std::to_string(workers) + "}"})
        .hash;
  };
  const std::string alone = hash(1, 1);
  EXPECT_EQ(alone, hash(1, 2));
  EXPECT_EQ(alone, hash(2, 1));
  EXPECT_EQ(alone, hash(3, 2));
  EXPECT_EQ(alone, hash(5, 1));
  EXPECT_NE(alone, hash(1, 1, 2)) << "workers are part of the topology";
}

INSTANTIATE_TEST_SUITE_P(Precisions, LocalHash, ::testing::Values("exact", "int8"));

}  // namespace
}  // namespace troupe::training_test
