#include "pipeline/steps/training_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "model/exact_sum.h"
#include "pipeline/steps/state_fields.h"
#include "tests/pipeline/state_example.h"

namespace troupe::pipeline {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const StateExample kExample = state_example();

TEST(InitialState, HasWeightsBySeedAndZerosElsewhere) {
  TrainingOptions options = kExample.options;
  options.seed = 42;
  const TrainingState state = initial_state(kExample.layout, options, "class", {1, 2});
  EXPECT_THAT(state.generator.weights, SizeIs(34));
  EXPECT_THAT(state.generator.moving, SizeIs(8));
  EXPECT_THAT(state.generator.optimiser_arrays, SizeIs(2 * 34));
  EXPECT_THAT(state.discriminator.weights, SizeIs(19));
  EXPECT_THAT(state.discriminator.optimiser_arrays, SizeIs(2 * 19));
  EXPECT_THAT(state.generator.optimiser_arrays, Each(0.0f));
  std::vector<float> weights(19), moving(6);
  model::initialise_parameters(kExample.layout.networks[kDiscriminator].parameters, 42, 1,
                               weights.data(), moving.data());
  EXPECT_EQ(state.discriminator.weights, weights);
  EXPECT_EQ(state.discriminator.moving, moving);
  ASSERT_THAT(state.scales, SizeIs(4));
  EXPECT_THAT(state.scales[0], SizeIs(6 + 2 + 2));
  EXPECT_THAT(state.scales[1], SizeIs(6 + 2 + 3));
  EXPECT_THAT(state.scales[2], SizeIs(6 + 2 + 2 + 2));
  for (const auto& slot : state.scales) EXPECT_THAT(slot, Each(model::kNoExponent));
  EXPECT_EQ(state.seed, 42u);
  EXPECT_EQ(state.step(4), 0u);
  EXPECT_EQ(state.micro_batch, 2u);
  EXPECT_EQ(state.micro_batches, 4u);
  EXPECT_EQ(state.numerics_class, "class");
  EXPECT_EQ(state.data_fingerprint, (runtime::Hash128{1, 2}));
}

// What is wrong with the example's state after `change`; "" if nothing is.
std::string fault_after(const std::function<void(TrainingState&)>& change) {
  TrainingState state = filled_state(kExample);
  change(state);
  const auto checked = check_state(state, kExample.layout, kExample.options);
  return checked.ok() ? "" : checked.error().message;
}

TEST(StateCheck, TakesAnyStateOfTheModel) {
  EXPECT_EQ(fault_after([](TrainingState&) {}), "");
  EXPECT_EQ(fault_after([](TrainingState& state) { state.iteration = UINT64_MAX; }), "");
}

TEST(StateCheck, NamesWhatAStateOfAnotherTrainingHasOtherwise) {
  const std::pair<std::function<void(TrainingState&)>, const char*> cases[] = {
      {[](auto& state) { state.generator.weights.pop_back(); },
       "its generator has 33 weights, this one 34"},
      {[](auto& state) { state.discriminator.weights.clear(); },
       "its discriminator has 0 weights, this one 19"},
      {[](auto& state) { state.generator.moving.push_back(0.0f); },
       "its generator has 9 moving statistics, this one 8"},
      {[](auto& state) { state.discriminator.optimiser_arrays.resize(19); },
       "its discriminator has 19 optimiser values, this one 38"},
      {[](auto& state) { state.scales.pop_back(); }, "its schedule has 3 slots, this one 4"},
      {[](auto& state) { state.slot = 4; }, "its schedule has 4 slots, this one 4"},
      {[](auto& state) { state.scales[1].pop_back(); }, "slot 1 (d_fake)"},
      {[](auto& state) { state.seed = 99; }, "trained with seed 99"},
      {[](auto& state) { state.micro_batch = 3; }, "trained with micro_batch 3"},
      {[](auto& state) { state.micro_batches = 5; }, "trained with micro_batches 5"},
      {[](auto& state) { state.stopping.reset(); }, "trained without train.stop"},
      {[](auto& state) { state.mean = mean_of(state.generator); },
       "trained with a mean of weights (train.mean), which the topology lacks"},
  };
  for (const auto& [change, fault] : cases) {
    EXPECT_THAT(fault_after(change), HasSubstr(fault));
  }
}

TEST(StateHash, IsThatOfEqualStatesAndKnown) {
  EXPECT_EQ(hash_of_state(filled_state(kExample)), hash_of_state(filled_state(kExample)));
  // Another value here means that checkpoints and hashes of earlier runs are no longer comparable:
  // a new kCheckpointVersion.
  TrainingState state;
  state.generator.weights = {1.0f, -2.5f};
  state.scales = {{3, -4}, {model::kNoExponent}};
  state.seed = 77;
  state.numerics_class = "reference float";
  EXPECT_EQ(hash_of_state(state).text(), "9aca2bb92e215828277d02bc22898d7e");
}

// Changes the least bit of field number `target` and keeps the names.
struct ChangeVisitor {
  int target;
  int next = 0;
  std::set<std::string> names{};

  template <class T>
  void change(T& value) {
    if (next++ == target) reinterpret_cast<unsigned char*>(&value)[0] ^= 1;
  }
  void parameters(std::size_t, ParameterPart, std::vector<float>& values) { change(values.back()); }
  void scales(std::vector<std::vector<std::int16_t>>& slots) {
    change(slots.front().front());
    change(slots.back().back());
  }
  template <class T>
  void number(const std::string& name, T& value) {
    EXPECT_TRUE(names.insert(name).second) << name << " twice";
    const bool is_copy = name == "outer.steps" || name == "rounds.before";
    if (!is_copy) change(value);
  }
  void text(const std::string& name, std::string& value) {
    names.insert(name);
    change(value.front());
  }
  void hash(const std::string& name, runtime::Hash128& value) {
    names.insert(name);
    change(value.high);
    change(value.low);
  }
  void workers(const std::string& name, std::vector<WorkerState>& values, auto each) {
    EXPECT_TRUE(names.insert(name).second) << name << " twice";
    for (std::size_t i = 0; i < values.size(); ++i) each(i, values[i]);
  }
  void perhaps(const std::string&, auto& value, auto each) { each(value.value()); }
};

// With all that is optional.
TrainingState whole_state() {
  TrainingState state = filled_state(kExample);
  state.outer = OuterState{{state.generator.weights, state.discriminator.weights}};
  state.mean = mean_of(state.generator);
  WorkerState worker{3, state.generator, state.discriminator, {}, {}};
  worker.moment = worker.stale = state.outer->velocity;
  state.turns = TurnState{WorkerSet{{2, 0, 0, 1}}, {}, {worker, worker}};
  state.shared = SharedState{{state.generator.weights, state.discriminator.weights}};
  return state;
}

TEST(StateHash, DependsOnEveryField) {
  std::set<runtime::Hash128> hashes{hash_of_state(whole_state())};
  ChangeVisitor all{-1};
  TrainingState untouched = whole_state();
  visit_state(untouched, all);
  ASSERT_GT(all.next, 30);
  for (int field = 0; field < all.next; ++field) {
    TrainingState state = whole_state();
    ChangeVisitor change{field};
    visit_state(state, change);
    EXPECT_TRUE(hashes.insert(hash_of_state(state)).second) << "field " << field;
  }
}

// Fails to compile when a member comes or goes: then visit_state has to be looked at.
TEST(StateHash, ListOfFieldsKnowsEveryMember) {
  TrainingState state;
  [[maybe_unused]] auto& [generator, discriminator, scales, seed, epoch, iteration, slot,
                          epoch_events, micro_batch, micro_batches, empty_iterations, epoch_loss,
                          epoch_loss_steps, ledger_events, ledger_sum, numerics_class,
                          data_fingerprint, stopping, outer, turns, mean, shared] = state;
  [[maybe_unused]] auto& [weights, moving, arrays, counters, learning_rate] = generator;
  [[maybe_unused]] auto& [updates, beta_1_power, beta_2_power] = counters;
  [[maybe_unused]] auto& [scale, seen, cooling] = learning_rate;
  [[maybe_unused]] auto& [best, epochs, waited] = seen;
  StoppingState stop;
  [[maybe_unused]] auto& [loss_sum, loss_steps, smoothed, seen_by_stop] = stop;
  OuterState of_workers;
  [[maybe_unused]] auto& [velocity] = of_workers;
  TurnState of_turns;
  [[maybe_unused]] auto& [next, order, workers] = of_turns;
  [[maybe_unused]] auto& [words] = next;
  WorkerState of_one;
  [[maybe_unused]] auto& [had, own_generator, own_discriminator, moment, stale] = of_one;
  MeanState of_weights;
  [[maybe_unused]] auto& [in_it, network] = of_weights;
  SharedState of_rounds;
  [[maybe_unused]] auto& [values] = of_rounds;
  ChangeVisitor names{-1};
  TrainingState filled = whole_state();
  visit_state(filled, names);
  // 10 numbers per network, counting epoch_loss and epoch_loss_steps; 12 more of the run, 6 of
  // early stopping, 1 of the outer optimiser, 1 of the mean, 1 of rounds, 6 of turns, and for
  // each of two workers 1 and 8 per network.
  EXPECT_EQ(names.names.size(), 2u * 10 + 12 + 6 + 1 + 1 + 1 + 6 + 2 * (1 + 2 * 8));
}

TEST(SoundState, HasHadAsManyTurnsAsItsStepSays) {
  TrainingState sound = whole_state();
  sound.scales.resize(3);
  sound.iteration = 5;
  sound.slot = 1;
  WorkerState worker = sound.turns->workers.front();
  worker.turns = 5;
  sound.turns->workers.assign(3, worker);
  sound.turns->workers[2].turns = 6;
  sound.turns->next = WorkerSet{{2}};
  EXPECT_EQ(fault_of(sound), nullptr);
  const auto is_faulty = [&](auto change) {
    TrainingState state = sound;
    change(state);
    return fault_of(state) != nullptr;
  };
  EXPECT_TRUE(is_faulty([](TrainingState& state) { state.turns->next = WorkerSet{{4}}; }))
      << "it has had it";
  EXPECT_TRUE(is_faulty([](TrainingState& state) { state.turns->next = WorkerSet{{8}}; }))
      << "there is none";
  EXPECT_TRUE(is_faulty([](TrainingState& state) { state.slot = 2; }));
  EXPECT_TRUE(is_faulty([](TrainingState& state) { state.turns->workers[0].turns = 6; }));
  EXPECT_TRUE(is_faulty([](TrainingState& state) { state.turns->workers[0].turns = 4; }));
  EXPECT_TRUE(is_faulty([](TrainingState& state) { state.turns->workers[2].turns = 7; }));
}

TEST(StateHash, BoundariesBetweenSequencesCount) {
  TrainingState a, b;
  a.scales = {{1, 2}, {3}};
  b.scales = {{1}, {2, 3}};
  EXPECT_NE(hash_of_state(a), hash_of_state(b));
  TrainingState c, d;
  c.generator.weights = {1.0f};
  d.discriminator.weights = {1.0f};
  EXPECT_NE(hash_of_state(c), hash_of_state(d));
}

}  // namespace
}  // namespace troupe::pipeline
