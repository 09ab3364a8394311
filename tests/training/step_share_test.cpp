// What a step contributes does not depend on what else was computed, before, beside or after it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "model/backend/device/backend.h"
#include "pipeline/steps/step_ahead.h"
#include "tests/support/tested_device.h"
#include "tests/training/alone.h"

namespace troupe::training_test {
namespace {

using pipeline::IterationShare;
using pipeline::StepAhead;
using pipeline::StepShare;
using pipeline::TrainingState;

bool same(const runtime::Buffer& a, const runtime::Buffer& b) {
  return std::ranges::equal(a.bytes(), b.bytes());
}

// A toy's training where steps may be computed in any order.
class Rehearsal {
 public:
  explicit Rehearsal(const std::string& schedule = "[d_real, d_fake, g, g]", int threads = 2,
                     std::unique_ptr<model::Backend> backend = model::make_cpu_backend())
      : alone_(zoo_topology("toy", {"train.schedule=" + schedule}), std::move(backend)),
        team_(threads),
        computer_(alone_.gan(), alone_.options(), team_) {}

  Alone& alone() { return alone_; }
  pipeline::StepComputer& computer() { return computer_; }
  const std::vector<model::SlotKind>& schedule() const { return alone_.options().schedule; }

  std::vector<pipeline::MicroBatch> micro_batches(std::uint64_t iteration) const {
    std::vector<pipeline::MicroBatch> made;
    for (std::uint32_t i = 0; i < alone_.options().micro_batches; ++i) {
      made.push_back(alone_.micro_batch(i, iteration * 100 + i));
    }
    return made;
  }
  std::shared_ptr<IterationShare> iteration(std::uint64_t number) const {
    return std::make_shared<IterationShare>(number, micro_batches(number));
  }
  StepShare step(const std::shared_ptr<IterationShare>& iteration, std::uint32_t slot) const {
    return {alone_.gan(), alone_.options(), iteration, slot};
  }
  void compute(const TrainingState& state, StepShare& step) {
    while (computer_.compute(state, step)) {
    }
  }
  // All there is to know of the step's contribution at scales that fit it.
  runtime::Buffer integers(const TrainingState& state, const StepShare& step) const {
    const auto scales = pipeline::scales_after(
        state.scales[step.slot()], contribution_of(step, 0, state.scales[step.slot()]).header,
        alone_.options().micro_batches);
    const auto fitting = contribution_of(step, 1, scales);
    CHECK(!fitting.header.flagged);
    return fitting.sums;
  }
  // Those of a step at the state's place, of an iteration of its own and a computer of its own.
  runtime::Buffer integers_alone(const TrainingState& state) {
    StepShare alone_share = step(iteration(state.iteration), state.slot);
    runtime::ThreadTeam team(1);
    pipeline::StepComputer computer(alone_.gan(), alone_.options(), team);
    while (computer.compute(state, alone_share)) {
    }
    return integers(state, alone_share);
  }
  // The state after so many steps.
  TrainingState after(std::uint64_t steps) {
    TrainingState state = alone_.initial_state();
    for (std::uint64_t i = 0; i < steps; ++i) advance(state);
    return state;
  }
  void advance(TrainingState& state) {
    const auto record = alone_.reduce_step(state, micro_batches(state.iteration));
    CHECK(pipeline::apply(alone_.gan(), alone_.options(), record, state).ok());
  }

 private:
  Alone alone_;
  runtime::ThreadTeam team_;
  pipeline::StepComputer computer_;
};

// Everything may run ahead that step_ahead says, because slot_access is the truth.
TEST(SlotAccess, ReadsAreExactlyWhatAContributionDependsOn) {
  Rehearsal rehearsal("[d_real, d_fake, g, d_both]");
  const TrainingState state = rehearsal.after(rehearsal.schedule().size());
  const auto iteration = rehearsal.iteration(state.iteration);
  for (std::uint32_t slot = 0; slot < rehearsal.schedule().size(); ++slot) {
    StepShare plain = rehearsal.step(iteration, slot);
    rehearsal.compute(state, plain);
    for (const int part : {model::kGeneratorWeights, model::kGeneratorMoving,
                           model::kDiscriminatorWeights, model::kDiscriminatorMoving}) {
      TrainingState other = state;
      auto& network = part < model::kDiscriminatorWeights ? other.generator : other.discriminator;
      const bool weights = part == model::kGeneratorWeights || part == model::kDiscriminatorWeights;
      for (float& value : weights ? network.weights : network.moving)
        value = value * 1.25F + 0.125F;
      StepShare changed = rehearsal.step(iteration, slot);
      rehearsal.compute(other, changed);
      const bool reads = (model::slot_access(plain.kind()).reads & part) != 0;
      EXPECT_EQ(!reads, same(rehearsal.integers(state, plain), rehearsal.integers(state, changed)))
          << "slot " << slot << " part " << part;
    }
  }
}

TEST(SlotAccess, WritesAreExactlyWhatApplyingChanges) {
  Rehearsal rehearsal("[d_real, d_fake, g, d_both]");
  TrainingState state = rehearsal.after(rehearsal.schedule().size());
  for (const model::SlotKind kind : rehearsal.schedule()) {
    const TrainingState before = state;
    rehearsal.advance(state);
    const int writes = model::slot_access(kind).writes;
    const auto writes_to = [&](model::StatePart part) { return (writes & part) != 0; };
    EXPECT_EQ(writes_to(model::kGeneratorWeights),
              before.generator.weights != state.generator.weights);
    EXPECT_EQ(writes_to(model::kGeneratorMoving),
              before.generator.moving != state.generator.moving);
    EXPECT_EQ(writes_to(model::kDiscriminatorWeights),
              before.discriminator.weights != state.discriminator.weights);
    EXPECT_EQ(writes_to(model::kDiscriminatorMoving),
              before.discriminator.moving != state.discriminator.moving);
  }
}

class WorkAhead : public testing::TestWithParam<const char*> {};

// As the Replica does it: while a step waits to be applied, what step_ahead says of the next one,
// and the rest afterwards.
TEST_P(WorkAhead, ChangesNoBit) {
  Rehearsal rehearsal(GetParam());
  TrainingState state = rehearsal.alone().initial_state();
  const auto& schedule = rehearsal.schedule();
  const std::uint64_t steps = 3 * schedule.size();
  auto iteration = rehearsal.iteration(0);
  StepShare current = rehearsal.step(iteration, 0);
  for (std::uint64_t number = 0; number < steps; ++number) {
    rehearsal.compute(state, current);
    if (state.slot + 1 == schedule.size()) {
      iteration->release_events(iteration->size());
      iteration = rehearsal.iteration(state.iteration + 1);
    }
    StepShare next =
        rehearsal.step(iteration, static_cast<std::uint32_t>((state.slot + 1) % schedule.size()));
    const StepAhead ahead = pipeline::step_ahead(schedule, state.slot);
    if (ahead == StepAhead::kAll) rehearsal.compute(state, next);
    while (ahead == StepAhead::kPreparation && rehearsal.computer().prepare(state, next)) {
    }
    EXPECT_TRUE(same(rehearsal.integers(state, current), rehearsal.integers_alone(state)))
        << "step " << number;
    rehearsal.advance(state);
    rehearsal.computer().retire(std::exchange(current, std::move(next)));
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, WorkAhead,
                         testing::Values("[d_real, d_fake, g, g]", "[d_fake, d_real]",
                                         "[g, d_real, d_fake]", "[d_fake, d_fake, g, d_real]",
                                         "[d_both, g]"));

TEST(StepShare, SurvivesTheNextStepsComputation) {
  Rehearsal rehearsal;
  const TrainingState state = rehearsal.after(3);  // the next is the iteration's last
  auto iteration = rehearsal.iteration(0);
  StepShare generator = rehearsal.step(iteration, 3);
  rehearsal.compute(state, generator);
  const runtime::Buffer before = rehearsal.integers(state, generator);
  const auto header = contribution_of(generator, 0, state.scales[3]).header;

  iteration->release_events(iteration->size());
  StepShare discriminator = rehearsal.step(rehearsal.iteration(1), 0);
  rehearsal.compute(state, discriminator);
  EXPECT_TRUE(same(before, rehearsal.integers(state, generator)));
  EXPECT_EQ(header, contribution_of(generator, 0, state.scales[3]).header);
  EXPECT_EQ(header.events, std::uint64_t{state.micro_batch} * state.micro_batches);
  EXPECT_EQ(discriminator.step(), generator.step() + 1);
}

TEST(StepShare, ContributesNothingBeforeItIsComplete) {
  Rehearsal rehearsal;
  const TrainingState state = rehearsal.alone().initial_state();
  StepShare step = rehearsal.step(rehearsal.iteration(0), 0);
  ASSERT_TRUE(rehearsal.computer().compute(state, step));
  EXPECT_EQ(step.computed(), 2u) << "one per thread";
  EXPECT_FALSE(step.complete());
  EXPECT_DEATH(contribution_of(step, 0, state.scales[0]), "the step is not computed");
}

// What a replica has computed when others are lost, and then with theirs: the schedule's slot, the
// micro-batches that it has first, and of these how many turns are computed before.
class TakingOver : public testing::TestWithParam<std::tuple<int, std::uint32_t>> {
 protected:
  int threads() const { return std::get<0>(GetParam()); }
  std::uint32_t slot() const { return std::get<1>(GetParam()); }

  // Elements and header of the share, at scales that fit it.
  void expect_same(Rehearsal& rehearsal, const TrainingState& state, const StepShare& one,
                   const StepShare& other) const {
    EXPECT_TRUE(same(rehearsal.integers(state, one), rehearsal.integers(state, other)));
    EXPECT_EQ(contribution_of(one, 0, state.scales[slot()]).header,
              contribution_of(other, 0, state.scales[slot()]).header);
  }
};

TEST_P(TakingOver, ContributesWhatOneShareOfAllDoes) {
  Rehearsal rehearsal("[d_real, d_fake, g, g]", threads());
  const TrainingState state = rehearsal.after(slot());
  StepShare whole = rehearsal.step(rehearsal.iteration(0), slot());
  rehearsal.compute(state, whole);
  const auto all = static_cast<std::ptrdiff_t>(whole.own());
  for (std::ptrdiff_t had = 0; had < all; ++had) {
    for (std::ptrdiff_t turns = 0; turns <= had; ++turns) {
      auto mine = rehearsal.micro_batches(0);
      const std::vector<pipeline::MicroBatch> theirs(mine.begin() + had, mine.end());
      mine.erase(mine.begin() + had, mine.end());
      const auto iteration = std::make_shared<IterationShare>(0, mine);
      StepShare step = rehearsal.step(iteration, slot());
      while (turns > 1 && rehearsal.computer().prepare(state, step)) {
      }
      for (std::ptrdiff_t i = 0; i < turns; ++i) rehearsal.computer().compute(state, step);
      const std::size_t computed = step.computed();
      if (slot() + 1 == rehearsal.schedule().size()) iteration->release_events(computed);
      iteration->take_over(theirs);
      step.take_over();
      rehearsal.computer().forget_prepared();
      EXPECT_EQ(step.computed(), computed) << "nothing is computed again";
      EXPECT_FALSE(step.complete());
      rehearsal.compute(state, step);
      expect_same(rehearsal, state, step, whole);
    }
  }
}

// In another share, as before: that the replica is no witness any more changes nothing of its own.
TEST_P(TakingOver, WhatWasOnlyComparedIsNotContributed) {
  Rehearsal rehearsal("[d_real, d_fake, g, g]", threads());
  const TrainingState state = rehearsal.after(slot());
  StepShare whole = rehearsal.step(rehearsal.iteration(0), slot());
  rehearsal.compute(state, whole);
  for (const bool completed : {false, true}) {
    // It compares the last one, which is what it takes over with the one before.
    auto mine = rehearsal.micro_batches(0);
    const std::vector<pipeline::MicroBatch> theirs(mine.end() - 2, mine.end());
    mine.erase(mine.end() - 2);
    const auto iteration = std::make_shared<IterationShare>(
        0, mine, pipeline::SpotCheck{slot(), theirs.back().index}, true);
    StepShare step = rehearsal.step(iteration, slot());
    if (completed) rehearsal.compute(state, step);
    EXPECT_EQ(step.computed(), completed ? 3u : 0u);
    iteration->take_over(theirs);
    step.take_over();
    rehearsal.computer().forget_prepared();
    EXPECT_EQ(step.computed(), completed ? 2u : 0u);
    rehearsal.compute(state, step);
    EXPECT_TRUE(same(rehearsal.integers(state, step), rehearsal.integers(state, whole)));
    const auto header = contribution_of(step, 0, state.scales[slot()]).header;
    EXPECT_EQ(header.micro_batches, state.micro_batches);
    EXPECT_EQ(header.events, std::uint64_t{state.micro_batch} * state.micro_batches);
    EXPECT_EQ(header.event_sum, contribution_of(whole, 0, state.scales[slot()]).header.event_sum);
    EXPECT_EQ(header.check_minimum, header.check_maximum);
  }
}

// The next step may have been computed ahead when a member is lost.
TEST_P(TakingOver, NothingGoesOutBeforeWhatItTookOverIsComputed) {
  Rehearsal rehearsal("[d_real, d_fake, g, g]", threads());
  const TrainingState state = rehearsal.after(slot());
  auto mine = rehearsal.micro_batches(0);
  const std::vector<pipeline::MicroBatch> theirs(mine.end() - 1, mine.end());
  mine.pop_back();
  const auto iteration = std::make_shared<IterationShare>(0, mine);
  StepShare step = rehearsal.step(iteration, slot());
  rehearsal.compute(state, step);
  ASSERT_TRUE(step.complete());
  iteration->take_over(theirs);
  step.take_over();
  EXPECT_FALSE(step.complete());
  EXPECT_DEATH(contribution_of(step, 0, state.scales[slot()]), "the step is not computed");
}

INSTANTIATE_TEST_SUITE_P(ThreadsAndSlots, TakingOver,
                         testing::Combine(testing::Values(1, 2, 3),
                                          testing::Values(0U, 1U, 2U, 3U)));

// Buckets that go out while the rest is computed hold what they would hold afterwards.
void expect_to_hold_what_is_computed(Rehearsal rehearsal, int threads) {
  TrainingState state = rehearsal.alone().initial_state();
  for (std::uint32_t slot = 0; slot < rehearsal.schedule().size(); ++slot) {
    StepShare step = rehearsal.step(rehearsal.iteration(state.iteration), slot);
    const std::vector<std::int16_t> scales(step.layout().tensors.size(), 20);
    pipeline::StepHeader early = step.begin_header(0), late = early;
    std::vector<std::pair<pipeline::Bucket, runtime::Buffer>> parts;
    std::int64_t end = step.sums().elements;
    const auto add_up = [&](std::int64_t from) {
      ASSERT_LT(from, end);
      const pipeline::Bucket part{from, end - from};
      parts.emplace_back(part, step.add_up(part, scales, early));
      end = from;
    };
    while (rehearsal.computer().compute(state, step, add_up)) {
      EXPECT_TRUE(parts.empty() || step.computed() == step.own()) << "some are missing";
    }
    // The caller may be the first of several threads to end.
    EXPECT_TRUE(threads > 1 || (end == 0 && parts.size() > 3));
    if (end > 0) add_up(0);
    for (const auto& [part, sums] : parts) {
      EXPECT_TRUE(same(sums, step.add_up(part, scales, late))) << part.offset;
    }
    step.finish_header(scales, early);
    step.finish_header(scales, late);
    EXPECT_EQ(early, late);
    EXPECT_NE(early.exponents, step.begin_header(0).exponents);
    rehearsal.advance(state);
  }
}

class EarlyBuckets : public testing::TestWithParam<int> {};

TEST_P(EarlyBuckets, HoldWhatIsComputed) {
  expect_to_hold_what_is_computed(Rehearsal("[d_real, d_fake, g, g]", GetParam()), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Teams, EarlyBuckets, testing::Values(1, 2, 3));

TEST(EarlyBucketsOfADevice, HoldWhatIsComputed) {
  const auto device = model::device::open(tested_device());
  ASSERT_TRUE(device.ok()) << device.error().message;
  auto backend = model::device::make_portable_backend(*device, 3, model::Precision::kFp32);
  ASSERT_TRUE(backend.ok());
  expect_to_hold_what_is_computed(Rehearsal("[d_real, d_fake, g, g]", 1, std::move(*backend)), 1);
}

// A device computes with the weights that its optimisers have, and updates them as the host does.
TEST(PlacedOptimisers, TrainToTheBitsOfTheHostWithWeightsOfTheirOwn) {
  const auto device = model::device::open(tested_device());
  ASSERT_TRUE(device.ok()) << device.error().message;
  const config::Topology topology = zoo_topology("toy", {"train.micro_batches=2"});
  const auto alone_on_device = [&] {
    auto backend = model::device::make_portable_backend(*device, 2, model::Precision::kFp32);
    CHECK(backend.ok(), backend.error().message);
    return std::make_unique<Alone>(topology, std::move(*backend));
  };
  const auto host = alone_on_device(), placed = alone_on_device();
  TrainingState updated_here = host->initial_state(), updated_there = placed->initial_state();
  placed->computer().place(updated_there);
  ASSERT_NE(placed->computer().optimisers()[pipeline::kGenerator], nullptr);
  ASSERT_EQ(host->computer().optimisers()[pipeline::kGenerator], nullptr);
  for (int step = 0; step < 8; ++step) {
    std::vector<pipeline::MicroBatch> events;
    for (std::uint32_t i = 0; i < 2; ++i) events.push_back(host->micro_batch(i, 10 + i));
    const auto record = host->reduce_step(updated_here, events);
    TrainingState without_weights = updated_there;
    std::ranges::fill(without_weights.generator.weights, 0.0F);
    std::ranges::fill(without_weights.discriminator.weights, 0.0F);
    const auto record_there = placed->reduce_step(without_weights, events);
    EXPECT_TRUE(std::ranges::equal(record.sums.bytes(), record_there.sums.bytes())) << step;
    ASSERT_TRUE(pipeline::apply(host->gan(), host->options(), record, updated_here).ok());
    ASSERT_TRUE(pipeline::apply(placed->gan(), placed->options(), record, updated_there,
                                placed->computer().optimisers())
                    .ok());
    ASSERT_EQ(pipeline::hash_of_state(updated_there), pipeline::hash_of_state(updated_here));
  }
}

// LAMB and LARS update on the host, and then so does the other network's optimiser.
TEST(PlacedOptimisers, AreOfTheHostWhereOneTakesNorms) {
  const auto device = model::device::open(tested_device());
  ASSERT_TRUE(device.ok()) << device.error().message;
  for (const std::string optimisers : {"{g: lamb, d: rmsprop}", "{g: adam, d: lars}"}) {
    const config::Topology topology =
        zoo_topology("toy", {"train.micro_batches=2", "train.optimiser=" + optimisers});
    const auto trained = [&](runtime::Result<std::unique_ptr<model::Backend>> backend) {
      CHECK(backend.ok(), backend.error().message);
      Alone alone(topology, std::move(*backend));
      TrainingState state = alone.initial_state();
      alone.computer().place(state);
      EXPECT_EQ(alone.computer().optimisers()[pipeline::kGenerator], nullptr);
      EXPECT_EQ(alone.computer().optimisers()[pipeline::kDiscriminator], nullptr);
      for (int i = 0; i < 8; ++i) alone.step(state);
      return pipeline::hash_of_state(state).text();
    };
    EXPECT_EQ(trained(model::device::make_portable_backend(*device, 2, model::Precision::kFp32)),
              trained(model::make_portable_backend()))
        << optimisers;
  }
}

// Whole iterations by kernels for tensor cores: groups change no bit, and weights are hardly
// others.
TEST(TensorCoresOfADevice, TrainAsTheReferenceAndTheSameBitsForAnyGroup) {
  const auto device = model::device::open(tested_device());
  ASSERT_TRUE(device.ok()) << device.error().message;
  const config::Topology topology = zoo_topology("toy", {"train.micro_batches=4"});
  const auto trained = [&](std::unique_ptr<model::Backend> backend) {
    Alone alone(topology, std::move(backend));
    TrainingState state = alone.initial_state();
    for (int i = 0; i < 8; ++i) alone.step(state);
    return std::pair(pipeline::hash_of_state(state).text(), state.generator.weights);
  };
  const auto weights = trained(model::make_reference_backend(model::DataType::kFloat32)).second;
  auto portable = model::device::make_portable_backend(*device, 1, model::Precision::kFp32);
  ASSERT_TRUE(portable.ok());
  const std::string portable_hash = trained(std::move(*portable)).first;
  for (const model::Precision precision : {model::Precision::kBf16, model::Precision::kFp32}) {
    const auto played = [&](std::int64_t group) {
      auto backend = model::device::make_fastest_backend(
          *device, group, precision, model::device::Products::kPlayedTensorCores);
      CHECK(backend.ok(), backend.error().message);
      return trained(std::move(*backend));
    };
    const auto [hash, found] = played(1);
    EXPECT_EQ(played(3).first, hash);
    EXPECT_NE(hash, portable_hash) << "its kernels are the portable ones";
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      difference += std::pow(static_cast<double>(found[i]) - static_cast<double>(weights[i]), 2);
      size += std::pow(static_cast<double>(weights[i]), 2);
    }
    EXPECT_LT(std::sqrt(difference / size), 0.05);
    EXPECT_GT(difference, 0.0);
  }
}

// A generator's prepared pass stands in memory that every other step uses.
TEST(StepComputer, PreparationLostToAnotherStepIsMadeAnew) {
  Rehearsal rehearsal;
  const TrainingState state = rehearsal.after(2);
  const auto iteration = rehearsal.iteration(0);
  StepShare generator = rehearsal.step(iteration, 2);
  ASSERT_TRUE(rehearsal.computer().prepare(state, generator));
  StepShare other = rehearsal.step(iteration, 3);
  rehearsal.compute(state, other);
  rehearsal.compute(state, generator);
  EXPECT_TRUE(same(rehearsal.integers(state, generator), rehearsal.integers_alone(state)));
}

TEST(StepComputer, WhatIsPreparedIsNotComputedAgain) {
  Rehearsal rehearsal;
  const TrainingState state = rehearsal.after(1);
  StepShare fakes = rehearsal.step(rehearsal.iteration(0), 1);
  while (rehearsal.computer().prepare(state, fakes)) {
  }
  TrainingState other = state;
  for (float& weight : other.generator.weights) weight += 0.5F;
  rehearsal.compute(other, fakes);
  EXPECT_TRUE(same(rehearsal.integers(state, fakes), rehearsal.integers_alone(state)))
      << "made with the other generator";
}

TEST(StepComputer, PreparesWhatMemoryAllowsAndThenNothingMore) {
  Rehearsal rehearsal;
  const TrainingState state = rehearsal.alone().initial_state();
  const auto iteration = rehearsal.iteration(0);
  const auto turns = [&](std::uint32_t slot) {
    const StepShare step = rehearsal.step(iteration, slot);
    int count = 0;
    while (rehearsal.computer().prepare(state, step)) ++count;
    return count;
  };
  ASSERT_EQ(state.micro_batches, 4u);
  EXPECT_EQ(turns(0), 0) << "d_real has nothing to prepare";
  EXPECT_EQ(turns(1), 2) << "all fakes";
  EXPECT_EQ(turns(2), 1) << "a pass per thread";
}

}  // namespace
}  // namespace troupe::training_test
