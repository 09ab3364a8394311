// Workers that take turns, without actors: against the papers' formula, and by the rules of turns.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launch/run/turn_order.h"
#include "pipeline/steps/turn_update.h"
#include "pipeline/steps/worker_turns.h"
#include "tests/training/alone.h"

namespace troupe::training_test {
namespace {

using pipeline::TrainingState;

// Steps of workers that take turns, without actors.
class Turns {
 public:
  explicit Turns(const std::string& strategy, const std::string& rate = "1e-3",
                 int micro_batches = 3)
      : alone_(topology(strategy, rate, micro_batches), model::make_cpu_backend()),
        options_(between(alone_.options())),
        of_worker_(pipeline::options_of_worker(options_)),
        team_(1, [] {}),
        computer_(alone_.gan(), of_worker_, team_),
        steps_(alone_.gan(), options_, of_worker_, computer_),
        turns_(alone_.gan(), options_, steps_),
        state_(pipeline::initial_state(alone_.gan(), options_, "", {})) {}

  // The next step, and after it one of workers `next`.
  void step(const std::vector<std::uint32_t>& next) {
    for (const std::uint32_t worker : state_.turns->next.numbers()) compute(worker);
    const auto step = share();
    ASSERT_TRUE(step);
    auto scales = state_.scales[state_.slot];
    Contribution sum = contribution_of(*step, 0, scales);
    if (sum.header.flagged) {
      scales = pipeline::scales_after(scales, sum.header, options_.micro_batches);
      sum = contribution_of(*step, 1, scales);
    }
    for (const std::uint32_t worker : next) sum.header.next.push_back({0, worker});
    const pipeline::StepRecord record{sum.header, scales, sum.sums, sum.layout.front};
    ASSERT_TRUE(pipeline::apply(alone_.gan(), options_, record, state_).ok());
    turns_.forget(state_);
  }

  void step(std::uint32_t next) { step(std::vector{next}); }

  // Computes the worker's contribution to its turn of this iteration, or of a later one, unless
  // that is done.
  void compute(std::uint32_t worker, std::uint64_t later = 0) {
    const std::uint64_t iteration = state_.iteration + later;
    const pipeline::IterationShare share(iteration, parts(iteration, worker));
    while (turns_.compute(state_, share)) {
    }
    ASSERT_TRUE(turns_.has_all_of(state_, share));
  }
  // The share of the next step, with those of these workers whose turn it is.
  std::optional<pipeline::StepShare> share(std::set<std::uint32_t> own = {0, 1, 2}) const {
    return turns_.share_of_turn(state_, [&](std::uint64_t, std::uint32_t part) {
      return own.contains(part / options_.parts());
    });
  }
  // Those of a part, where workers have several.
  pipeline::MicroBatch events(std::uint64_t iteration, std::uint32_t part) const {
    return alone_.micro_batch(part, 100 + iteration * options_.all_parts() + part);
  }
  std::vector<pipeline::MicroBatch> parts(std::uint64_t iteration, std::uint32_t worker) const {
    std::vector<pipeline::MicroBatch> parts;
    for (std::uint32_t i = 0; i < options_.parts(); ++i) {
      parts.push_back(events(iteration, worker * options_.parts() + i));
    }
    return parts;
  }
  const TrainingState& state() const { return state_; }
  pipeline::WorkerTurns& turns() { return turns_; }
  const pipeline::WorkerSteps& steps() const { return steps_; }

 private:
  static config::Topology topology(const std::string& strategy, const std::string& rate,
                                   int micro_batches) {
    return zoo_topology("toy", {"train.strategy=" + strategy, "train.micro_batch=4",
                                "train.micro_batches=" + std::to_string(micro_batches),
                                "train.schedule=[d_both]", "train.optimiser={g: sgd, d: sgd}",
                                "train.learning_rate={g: " + rate + ", d: " + rate + "}"});
  }
  static pipeline::TrainingOptions between(const pipeline::TrainingOptions& options) {
    return pipeline::options_between_members(options, {});
  }

  Alone alone_;
  const pipeline::TrainingOptions options_, of_worker_;
  runtime::ThreadTeam team_;
  pipeline::StepComputer computer_;
  pipeline::WorkerSteps steps_;
  pipeline::WorkerTurns turns_;
  TrainingState state_;
};

// A weight of the centre and of the worker, that worker's momentum, and the centre's weight before
// its last turn.
struct Weight {
  double &centre, &worker, &moment, &stale;
};

// The papers' rule of a turn, where `change` is the learning rate times the gradient at the
// worker's weights.
struct TurnFormula {
  const char* name;
  const char* settings;
  void (*turn)(Weight weight, double change);
};

constexpr TurnFormula kFormulas[] = {
    {"downpour", "rate: 0.5",
     [](Weight weight, double change) {
       weight.centre -= 0.5 * change;
       weight.worker = weight.centre;
     }},
    {"easgd", "rho: 0.3",
     [](Weight weight, double change) {
       const double x = weight.worker - change, force = 0.3 * (x - weight.centre);
       weight.worker = x - force;
       weight.centre += force;
     }},
    {"gem", "momentum: 0.6, kappa: 1.2",
     [](Weight weight, double change) {
       weight.moment = 0.6 * weight.moment - change;
       const double others = std::abs(weight.centre - std::exchange(weight.stale, weight.centre));
       const double share = (1.2 * std::abs(weight.moment) - others) / std::abs(change);
       if (change != 0.0) weight.centre -= std::clamp(share, 0.0, 5.0) * change;
       weight.worker = weight.centre;
     }},
};

class TurnsByFormula : public testing::TestWithParam<TurnFormula> {};

// The gradient is that of a run without workers at the weights that the worker has from its turn
// before.
TEST_P(TurnsByFormula, AreThoseOfThePaperOverManySteps) {
  const std::string kind = GetParam().name, settings = GetParam().settings;
  Turns turns("{kind: " + kind + ", workers: 3, steps: 1, " + settings + "}");
  Alone plain(zoo_topology("toy", {"train.micro_batch=4", "train.micro_batches=1",
                                   "train.schedule=[d_both]", "train.optimiser={g: sgd, d: sgd}",
                                   "train.learning_rate={g: 1e-3, d: 1e-3}"}),
              model::make_cpu_backend());
  TrainingState at = plain.initial_state();
  using Numbers = std::vector<double>;
  const std::size_t weights = at.discriminator.weights.size();
  Numbers centre(at.discriminator.weights.begin(), at.discriminator.weights.end());
  std::vector<Numbers> workers(3, centre), stales(3, centre), moments(3, Numbers(weights));
  const std::vector<std::uint32_t> order{0, 1, 2, 0, 2, 1, 0, 1, 2, 0, 2, 1, 2};
  for (std::size_t step = 0; step + 1 < order.size(); ++step) {
    const std::uint32_t worker = order[step];
    const pipeline::WorkerState before = turns.state().turns->workers[worker];
    at.generator.moving = before.generator.moving;
    at.discriminator = before.discriminator;
    at.iteration = step / 3;
    // The weights after a plain step are those before minus the learning rate times the gradient.
    TrainingState after = at;
    const auto record = plain.reduce_step(at, {turns.events(step / 3, worker)});
    ASSERT_TRUE(pipeline::apply(plain.gan(), plain.options(), record, after).ok());
    for (std::size_t i = 0; i < weights; ++i) {
      GetParam().turn({centre[i], workers[worker][i], moments[worker][i], stales[worker][i]},
                      static_cast<double>(at.discriminator.weights[i]) -
                          static_cast<double>(after.discriminator.weights[i]));
    }
    ASSERT_NO_FATAL_FAILURE(turns.step(order[step + 1]));
    const TrainingState& state = turns.state();
    const auto& own = state.turns->workers[worker].discriminator.weights;
    for (std::size_t i = 0; i < weights; ++i) {
      ASSERT_NEAR(state.discriminator.weights[i], centre[i], 1e-6) << "step " << step;
      ASSERT_NEAR(own[i], workers[worker][i], 1e-6) << "step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TurnsByFormula, testing::ValuesIn(kFormulas),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(WorkerTurns, WorkerIsComputedBeforeItsTurnAndItsBitsDoNotDependOnTheTurnsSince) {
  for (const char* kind : {"downpour", "easgd", "gem"}) {
    const std::string strategy = "{kind: " + std::string(kind) + ", workers: 3, steps: 1}";
    Turns early(strategy), late(strategy);
    EXPECT_FALSE(early.share()) << "nothing is computed";
    ASSERT_NO_FATAL_FAILURE(early.compute(1));
    EXPECT_FALSE(early.share()) << "worker 0 is not computed";
    EXPECT_TRUE(early.share({})) << "of another replica";
    for (const std::uint32_t next : {2, 1, 0, 1, 2, 0}) {
      ASSERT_NO_FATAL_FAILURE(early.step(next));
      ASSERT_NO_FATAL_FAILURE(late.step(next));
    }
    EXPECT_EQ(hash_of_state(early.state()), hash_of_state(late.state())) << kind;
    EXPECT_EQ(early.state().iteration, 2u);
  }
}

TEST(WorkerTurns, WorkerUnderWayIsEndedAndThenTheOneWhoseTurnItIsIsComputed) {
  Turns turns("{kind: downpour, workers: 3, steps: 1}");
  const TrainingState& state = turns.state();
  const auto share = [&](const std::vector<std::uint32_t>& workers) {
    std::vector<pipeline::MicroBatch> events;
    for (const std::uint32_t worker : workers) events.push_back(turns.events(0, worker));
    return pipeline::IterationShare(0, std::move(events));
  };
  const auto first = share({1}), all = share({2, 1, 0}), last = share({2});
  const auto own = [](std::uint64_t, std::uint32_t) { return true; };
  ASSERT_TRUE(turns.turns().compute(state, first));
  ASSERT_FALSE(turns.turns().has_all_of(state, first)) << "it is under way";
  while (!turns.turns().has_all_of(state, first)) {
    ASSERT_TRUE(turns.turns().compute(state, all));
    ASSERT_FALSE(turns.turns().share_of_turn(state, own));
  }
  while (!turns.turns().share_of_turn(state, own)) {
    ASSERT_TRUE(turns.turns().compute(state, all));
    ASSERT_FALSE(turns.turns().has_all_of(state, last));
  }
}

// The worker that is ready first, among those whose turn of the iteration is still to come, and
// behind an iteration's last turn among all.
TEST(WorkerTurns, OfferIsOfOwnWorkersThatHaveNotHadTheirTurn) {
  using Offers = std::vector<pipeline::TurnOffer>;
  Turns turns("{kind: downpour, workers: 3, steps: 1}");
  const auto all = [](std::uint64_t, std::uint32_t) { return true; };
  const auto own = [](std::uint64_t, std::uint32_t worker) { return worker != 2; };
  const auto offers = [&](const auto& owned) { return turns.turns().offers(turns.state(), owned); };
  EXPECT_EQ(offers(all), (Offers{{0, 1}})) << "0 has the turn under way";
  EXPECT_EQ(offers([](std::uint64_t, std::uint32_t worker) { return worker == 0; }), Offers());
  ASSERT_NO_FATAL_FAILURE(turns.compute(0));
  turns.turns().note_time(3.0);
  ASSERT_NO_FATAL_FAILURE(turns.compute(2));
  EXPECT_EQ(offers(all), (Offers{{0, 2}})) << "it is ready";
  EXPECT_EQ(offers(own), (Offers{{3000, 1}})) << "as long as another took";
  ASSERT_NO_FATAL_FAILURE(turns.step(2));
  EXPECT_EQ(offers(all).front().worker, 1u);
  ASSERT_NO_FATAL_FAILURE(turns.step(1));
  turns.turns().note_time(3.0);
  ASSERT_NO_FATAL_FAILURE(turns.compute(2, 1));
  EXPECT_EQ(offers(all), (Offers{{0, 2}})) << "it is ready for the next iteration";
  ASSERT_NO_FATAL_FAILURE(turns.step(2));
  EXPECT_EQ(turns.state().iteration, 1u);
  EXPECT_EQ(turns.state().turns->next.numbers(), std::vector<std::uint32_t>{2});
}

TEST(WorkerTurns, QuorumIsOfferedAsManyAsTheNextStepTakesAndThoseThatAreNotBegunQueue) {
  using Offers = std::vector<pipeline::TurnOffer>;
  Turns turns("{kind: quorum, workers: 3, of: 2, steps: 1}");
  const auto all = [](std::uint64_t, std::uint32_t) { return true; };
  const auto offers = [&] { return turns.turns().offers(turns.state(), all); };
  EXPECT_EQ(turns.state().turns->next.numbers(), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(offers(), (Offers{{0, 2}})) << "an iteration's last step takes who is left";
  ASSERT_NO_FATAL_FAILURE(turns.step(2));
  turns.turns().note_time(2.0);
  ASSERT_NO_FATAL_FAILURE(turns.compute(2));
  EXPECT_EQ(offers(), (Offers{{2000, 0}, {4000, 1}})) << "computed one behind the other";
  turns.turns().note_time(2.0);
  ASSERT_NO_FATAL_FAILURE(turns.compute(1, 1));
  EXPECT_EQ(offers(), (Offers{{0, 1}, {2000, 0}}));
}

TEST(WorkerTurns, QuorumContributesItsOwnWorkersWhenAllOfThemAreComputed) {
  Turns turns("{kind: quorum, workers: 3, of: 2, steps: 1}");
  ASSERT_NO_FATAL_FAILURE(turns.compute(1));
  EXPECT_FALSE(turns.share({0, 1})) << "worker 0 is not computed";
  EXPECT_EQ(turns.share({1, 2})->own(), 1u) << "2 is not of the turn";
  ASSERT_NO_FATAL_FAILURE(turns.compute(0));
  EXPECT_EQ(turns.share({0, 1})->own(), 2u);
}

// Three workers of two parts each.
class TurnsInSites : public ::testing::Test {
 protected:
  Turns turns_{"{kind: downpour, sites: 3, steps: 1}", "1e-3", 6};
};

TEST_F(TurnsInSites, OwnerOfTheFirstPartOffersAndContributesTheWorkerAndOthersTheirEvents) {
  const auto offers = [&](const std::set<std::uint32_t>& own) {
    return turns_.turns().offers(
        turns_.state(), [&](std::uint64_t, std::uint32_t part) { return own.contains(part); });
  };
  ASSERT_NO_FATAL_FAILURE(turns_.compute(2));
  EXPECT_EQ(offers({4}).size(), 1u);
  EXPECT_EQ(offers({5}).size(), 0u);
  ASSERT_NO_FATAL_FAILURE(turns_.compute(0));
  const auto whole = turns_.share();
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->own(), 2u) << "both parts, with their events";
  pipeline::StepHeader header = whole->begin_header(0);
  whole->finish_header(turns_.state().scales[0], header);
  EXPECT_EQ(header.micro_batches, 1u) << "of one worker";
  EXPECT_EQ(header.events, 8u);
  // A replica with the second part alone.
  const auto second = turns_.turns().share_of_turn(
      turns_.state(), [](std::uint64_t, std::uint32_t part) { return part == 1; });
  ASSERT_TRUE(second);
  EXPECT_EQ(second->own(), 2u) << "what is ready is shared, although the first part is another's";
}

TEST_F(TurnsInSites, WorkersThatAreSharedAreComputedInTheirOrder) {
  ASSERT_NO_FATAL_FAILURE(turns_.step(2));
  const auto share = [&](std::uint64_t iteration, std::set<std::uint32_t> parts) {
    std::vector<pipeline::MicroBatch> events;
    for (const std::uint32_t part : parts) events.push_back(turns_.events(iteration, part));
    return pipeline::IterationShare(iteration, std::move(events));
  };
  ASSERT_TRUE(turns_.turns().compute(turns_.state(), share(0, {2, 4, 5})));
  EXPECT_TRUE(turns_.steps().is_at(0, 1)) << "although 2 has the turn";
  turns_.turns().begin_anew();
  ASSERT_TRUE(turns_.turns().compute(turns_.state(), share(0, {2, 3, 4, 5})));
  EXPECT_TRUE(turns_.steps().is_at(0, 2)) << "nobody else has parts of either";
  turns_.turns().begin_anew();
  ASSERT_NO_FATAL_FAILURE(turns_.step(1));
  EXPECT_FALSE(turns_.turns().compute(turns_.state(), share(1, {2, 4, 5})))
      << "worker 1 has not had its turn before";
  EXPECT_TRUE(turns_.turns().compute(turns_.state(), share(1, {2, 3, 4, 5})));
  EXPECT_TRUE(turns_.steps().is_at(1, 2));
}

TEST_F(TurnsInSites, WhatBeginsAnewIsReadyForNothing) {
  ASSERT_NO_FATAL_FAILURE(turns_.compute(0));
  ASSERT_TRUE(turns_.share());
  turns_.turns().begin_anew();
  EXPECT_FALSE(turns_.share());
}

// w -= rate / Q times the sum of what the workers of a step have changed, each from the weights
// that it took at its turn before: computed by steps of a run without workers, from those weights.
TEST(Quorum, AppliesTheSumOfWhatItsWorkersDidAtTheWeightsOfTheirTurnsBefore) {
  Turns turns("{kind: quorum, workers: 3, of: 2, steps: 1, rate: 0.5}");
  Alone plain(zoo_topology("toy", {"train.micro_batch=4", "train.micro_batches=1",
                                   "train.schedule=[d_both]", "train.optimiser={g: sgd, d: sgd}",
                                   "train.learning_rate={g: 1e-3, d: 1e-3}"}),
              model::make_cpu_backend());
  TrainingState at = plain.initial_state();
  std::vector<double> centre(at.discriminator.weights.begin(), at.discriminator.weights.end());
  std::vector<TrainingState> taken(3, at);
  const std::vector<std::vector<std::uint32_t>> order{{0, 1}, {2}, {1, 2}, {0},
                                                      {0, 2}, {1}, {0, 1}};
  for (std::size_t step = 0; step + 1 < order.size(); ++step) {
    for (const std::uint32_t worker : order[step]) {
      at.generator.moving = taken[worker].generator.moving;
      at.discriminator = taken[worker].discriminator;
      at.iteration = step / 2;
      TrainingState after = at;
      const auto record = plain.reduce_step(at, {turns.events(step / 2, worker)});
      ASSERT_TRUE(pipeline::apply(plain.gan(), plain.options(), record, after).ok());
      for (std::size_t i = 0; i < centre.size(); ++i) {
        centre[i] -= 0.5 / 2 *
                     (static_cast<double>(at.discriminator.weights[i]) -
                      static_cast<double>(after.discriminator.weights[i]));
      }
    }
    ASSERT_NO_FATAL_FAILURE(turns.step(order[step + 1]));
    const TrainingState& state = turns.state();
    for (std::size_t i = 0; i < centre.size(); ++i) {
      ASSERT_NEAR(state.discriminator.weights[i], centre[i], 1e-6) << "step " << step;
    }
    for (const std::uint32_t worker : order[step]) {
      taken[worker] = state;
      const auto& own = state.turns->workers[worker];
      EXPECT_EQ(own.discriminator.weights, state.discriminator.weights);
      EXPECT_EQ(own.discriminator.moving, state.discriminator.moving);
      EXPECT_EQ(own.turns, step / 2 + 1);
    }
  }
}

// Behind the first `turns` of them, of four workers.
TrainingState state_behind(const std::vector<std::uint32_t>& order, std::size_t turns) {
  constexpr std::uint32_t kWorkers = 4;
  TrainingState state;
  state.scales.resize(kWorkers);
  state.iteration = turns / kWorkers;
  state.slot = static_cast<std::uint32_t>(turns % kWorkers);
  state.turns.emplace().workers.resize(kWorkers);
  state.turns->next.add(order[turns]);
  for (std::size_t turn = 0; turn < turns; ++turn) {
    state.turns->order = pipeline::with_turn(state.turns->order, order[turn]);
    ++state.turns->workers[order[turn]].turns;
  }
  return state;
}

TEST(TurnOrder, IsRefusedWhereTheStateCameAnotherWay) {
  const std::vector<std::uint32_t> way{0, 2, 1, 3, 0, 3, 2, 1};
  const auto accepts = [&](std::size_t turns, const std::vector<std::uint32_t>& order) {
    return launch::check_turn_order(std::make_shared<std::vector<std::uint32_t>>(order),
                                    state_behind(way, turns))
        .ok();
  };
  for (std::size_t turns = 0; turns < way.size(); ++turns) EXPECT_TRUE(accepts(turns, way));
  const std::vector<std::uint32_t> earlier{0, 1, 2, 3, 0, 3, 2, 1};
  EXPECT_TRUE(accepts(0, earlier));
  EXPECT_FALSE(accepts(1, earlier)) << "the next turn is another one's";
  EXPECT_FALSE(accepts(3, earlier)) << "of the open iteration, the same ones had their turns";
  EXPECT_FALSE(accepts(4, earlier)) << "the iteration before was another one";
  EXPECT_FALSE(accepts(6, earlier));
  const std::vector<std::uint32_t> later{0, 2, 1, 3, 0, 1, 2, 3};
  EXPECT_TRUE(accepts(4, later));
  EXPECT_FALSE(accepts(6, later));
  EXPECT_TRUE(accepts(4, {0, 2, 1, 3})) << "it ends where the state is";
  EXPECT_FALSE(accepts(4, {0, 1, 2, 3}));
  EXPECT_TRUE(accepts(6, {0, 1, 2, 3})) << "it says nothing of what is next";
}

// A part of a rate that ends leaves its factor behind: a worker that lacked it would go on with the
// full rate.
TEST(WorkerTurns, WorkersGoOnWithTheRateBehindTheirOwnIterationsWheneverTheirTurnWas) {
  for (const char* part : {"cosine, for: 2 iterations, to: 0.1}, {policy: constant",
                           "exponential, decay: 0.3, every: 1 iterations"}) {
    Turns turns("{kind: downpour, workers: 3, steps: 1}",
                "{rate: 1e-3, parts: [{policy: " + std::string(part) + "}]}");
    for (const std::uint32_t next : {2, 1, 0, 1, 2, 0}) ASSERT_NO_FATAL_FAILURE(turns.step(next));
    const TrainingState& state = turns.state();
    EXPECT_LE(state.discriminator.learning_rate.scale, 0.1);
    for (const auto& worker : state.turns->workers) {
      EXPECT_EQ(worker.turns, 2u);
      EXPECT_EQ(worker.generator.learning_rate, state.generator.learning_rate) << part;
      EXPECT_EQ(worker.discriminator.learning_rate, state.discriminator.learning_rate) << part;
    }
  }
}

}  // namespace
}  // namespace troupe::training_test
