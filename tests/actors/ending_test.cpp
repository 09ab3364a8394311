// How a run ends: what is saved and validated when training is over, stopped, or someone fails.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "actors/coordinator.h"
#include "actors/validator.h"
#include "pipeline/data/dataset.h"
#include "tests/actors/theatre.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/support/json_value.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Message;
using runtime::Script;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kSeeds = 40;

// One run: a Coordinator, and a replica that ends at iteration 3 after two snapshots for
// validation.
class Ending {
 public:
  explicit Ending(Toy& toy) : toy_(toy) {
    replica.start = [this](Context& context) {
      for (const std::uint64_t iteration : {1, 2}) {
        context.send("validation", Message::of(Snapshot{toy_.state(iteration)}));
      }
      ReplicaEnd end;
      end.state = toy_.state(3);
      end.validations = 2;
      context.send_control("coordinator", Message::of(std::move(end)));
    };
    replica.undeliverable = [](Context&, Message, const Error&) {};
    checkpointer.receive = [](Context& context, Message message) {
      if (message.as<LastState>() != nullptr) context.after(seconds(1));
      if (message.as<FinishMetrics>() != nullptr)
        context.send_control("monitor", std::move(message));
    };
    checkpointer.timer = [](Context& context, runtime::TimerId) {
      context.send_control("coordinator", Message::of(LastStateDone{}));
    };
    monitor.receive = [this](Context& context, const Message& message) {
      const auto* event = message.as<EventMetrics>();
      if (event != nullptr) {
        const auto* test = std::get_if<telemetry::TestLossFacts>(&event->record.body);
        if (test == nullptr) events.push_back(event->record.step);
        if (test != nullptr) losses[test->slot].push_back(*test);
      }
      if (const auto* told = message.as<ShowersMetrics>()) showers[told->step] = told->json;
      if (message.as<FinishMetrics>() == nullptr) return;
      ++finished;
      context.send_control("coordinator", Message::of(LastStateDone{}));
    };
  }

  runtime::NodeEnd run(std::uint64_t seed, ActorMaker validator) {
    Play play;
    play_ = &play;
    play.actor("coordinator", [&] {
      CoordinatorOptions options;
      options.state = toy_.state(0);
      return std::make_unique<Coordinator>(options, outcome);
    });
    play.actor("reducer", Script{});
    play.actor("replica.0", replica).actor("checkpointer", checkpointer).actor("monitor", monitor);
    play.actor("validator", std::move(validator));
    play.link("replica.0", "validation", "validator", "snapshots");
    // What there is no room for is dropped.
    play.link("validator", "metrics", "monitor", "metrics", runtime::Lane::kMetrics, 100);
    runtime::NodeEnd end = play.run(seed);
    log_lines = play.log_lines();
    return end;
  }
  runtime::NodeEnd run(std::uint64_t seed, const Script& validator) {
    return run(seed, [&] { return std::make_unique<runtime::ScriptedActor>(validator); });
  }
  void stop() { play_->node().request_stop(); }

  Script replica, checkpointer, monitor;
  std::shared_ptr<RunOutcome> outcome = std::make_shared<RunOutcome>();
  std::vector<std::uint64_t> events;             // steps of validations in metrics
  std::map<std::uint64_t, std::string> showers;  // by step
  std::map<std::string, std::vector<telemetry::TestLossFacts>> losses;  // by slot
  int finished = 0;
  std::string log_lines;

 private:
  Toy& toy_;
  Play* play_ = nullptr;
};

pipeline::Dataset test_data(const Toy& toy, const TemporaryFolder& folder) {
  write_toy_data(folder / "toy.h5");
  pipeline::DatasetOptions options = toy.topology().data.dataset;
  options.paths = {folder / "toy.h5"};
  options.split = pipeline::DataSplit::kAll;
  auto data = pipeline::Dataset::open(options);
  CHECK(data.ok(), data.ok() ? "" : data.error().message);
  return std::move(data).value();
}

TEST(EndOfARun, SnapshotsThatWaitAreValidatedBeforeTheLastState) {
  Toy toy;
  const TemporaryFolder folder;
  pipeline::Dataset data = test_data(toy, folder);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Ending ending(toy);
    const auto end = ending.run(seed, [&] {
      return std::make_unique<Validator>(ValidatorOptions{4, {}, {}}, toy.context(), data);
    });
    EXPECT_FALSE(end.error) << end.error->message;
    EXPECT_THAT(ending.events, ElementsAre(4, 8, 12)) << seed;
    EXPECT_TRUE(ending.outcome->validation) << seed;
    EXPECT_TRUE(ending.outcome->saved) << seed;
  }
}

// For 12 test events.
void expect_toy_showers(std::uint64_t step, const JsonValue& json) {
  EXPECT_EQ(json["step"].integer(), step);
  EXPECT_EQ(json["space"].list().size(), 3U);
  for (const char* axis : {"x", "y", "z"}) {
    for (const char* sample : {"data", "generated"}) {
      EXPECT_EQ(json["profiles"][axis][sample].list().size(), 4U);
    }
  }
  EXPECT_EQ(json["histograms"].list().size(), 2U);
  for (const JsonValue& histogram : json["histograms"].list()) {
    unsigned long long entries = 0;
    for (const JsonValue& count : histogram["data"].list()) entries += count.integer();
    EXPECT_EQ(entries, 12U);
    EXPECT_EQ(histogram["data"].list().size(), histogram["generated"].list().size());
  }
  EXPECT_EQ(json["events"].list().size(), 4U);
  for (const JsonValue& event : json["events"].list()) {
    EXPECT_EQ(event["energy"].number(), 100.0);
    EXPECT_TRUE(event["angle"].is_null());
    // 64 cells of random energies below 1/16.
    EXPECT_NEAR(event["data"]["total"].number(), 2.0, 1.0);
    EXPECT_EQ(event["data"]["cells"].list().size(), 64U);
    const JsonValue& generated = event["generated"];
    EXPECT_EQ(generated["cells"].list().size(), generated["gev"].list().size());
  }
}

// With the same in them however things came about.
TEST(EndOfARun, ShowersOfEveryValidationAreTold) {
  Toy toy;
  const TemporaryFolder folder;
  pipeline::Dataset data = test_data(toy, folder);
  std::map<std::uint64_t, std::string> expected;
  for (const std::uint64_t seed : {1, 2, 3}) {
    Ending ending(toy);
    const auto end = ending.run(seed, [&] {
      return std::make_unique<Validator>(ValidatorOptions{12, {}, {}}, toy.context(), data);
    });
    EXPECT_FALSE(end.error) << end.error->message;
    if (expected.empty()) expected = ending.showers;
    EXPECT_EQ(ending.showers, expected);
  }
  ASSERT_EQ(expected.size(), 3U);
  for (const auto& [step, text] : expected) expect_toy_showers(step, parse_json(text));
}

TEST(EndOfARun, LossesOfTheTestEventsAreToldWithEveryValidation) {
  Toy toy;
  const TemporaryFolder folder;
  pipeline::Dataset data = test_data(toy, folder);
  Ending ending(toy);
  const auto end = ending.run(1, [&] {
    return std::make_unique<Validator>(ValidatorOptions{12, {}, {}}, toy.context(), data);
  });
  EXPECT_FALSE(end.error) << end.error->message;
  EXPECT_EQ(ending.losses.size(), 3U);
  for (const char* slot : {"test_d_real", "test_d_fake", "test_g"}) {
    ASSERT_EQ(ending.losses[slot].size(), 3U) << slot;
    for (const auto& facts : ending.losses[slot]) {
      EXPECT_EQ(facts.events, 12U);
      ASSERT_EQ(facts.losses.size(), 3U);
      EXPECT_EQ(facts.losses[0].first, "generation");
      EXPECT_GT(facts.losses[0].second, 0.0);
    }
  }
}

TEST(EndOfARun, ValidationThatMetricsHaveIsNotToldAgain) {
  Toy toy;
  const TemporaryFolder folder;
  pipeline::Dataset data = test_data(toy, folder);
  Ending ending(toy);
  const auto end = ending.run(1, [&] {
    const ValidatorOptions options{4, {}, 12};
    return std::make_unique<Validator>(options, toy.context(), data);
  });
  EXPECT_FALSE(end.error) << end.error->message;
  EXPECT_THAT(ending.events, ElementsAre(4, 8));
  EXPECT_EQ(ending.showers.size(), 2U);
  EXPECT_TRUE(ending.outcome->validation);
}

// As a long validation that looks whether it is to stop, or waits for its turn.
TEST(EndOfARun, StopDuringTheLastValidationEndsItAndTheStateIsSaved) {
  Toy toy;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Ending ending(toy);
    Script validator;
    validator.receive = [&](Context&, const Message& message) {
      if (message.as<LastState>() != nullptr) ending.stop();
    };
    const auto end = ending.run(seed, validator);
    EXPECT_FALSE(end.error) << end.error->message;
    EXPECT_TRUE(ending.outcome->stopped);
    EXPECT_TRUE(ending.outcome->saved);
    EXPECT_EQ(ending.finished, 1);
    EXPECT_EQ(ending.log_lines, "");
  }
}

// Its file may have been removed since.
TEST(EndOfARun, CheckpointAskedForDuringTheLastValidationIsThatOfTheLastState) {
  Toy toy;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Ending ending(toy);
    std::uint64_t iteration = 0;
    const auto receive = ending.checkpointer.receive;
    ending.checkpointer.receive = [&](Context& context, Message message) {
      if (const auto* asked = message.as<Snapshot>()) iteration = asked->state->iteration;
      receive(context, std::move(message));
    };
    Script validator;
    validator.receive = [&](Context& context, const Message& message) {
      if (message.as<LastState>() == nullptr) return;
      context.send_control("coordinator", Message::of(CheckpointRequest{}));
      context.after(seconds(2));
    };
    validator.timer = [](Context& context, runtime::TimerId) {
      context.send_control("coordinator", Message::of(LastStateDone{}));
    };
    EXPECT_FALSE(ending.run(seed, validator).error);
    EXPECT_EQ(iteration, 3U);
  }
}

TEST(EndOfARun, ValidatorThatFailsInTheLastValidationCostsNeitherStateNorMetrics) {
  Toy toy;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Ending ending(toy);
    Script validator;
    validator.receive = [&](Context& context, const Message& message) {
      if (message.as<LastState>() != nullptr) context.fail({ErrorKind::kData, "no such event"});
    };
    const auto end = ending.run(seed, validator);
    ASSERT_TRUE(end.error);
    EXPECT_EQ(end.error->kind, ErrorKind::kData);
    EXPECT_THAT(end.error->message, HasSubstr("validator: no such event"));
    EXPECT_TRUE(ending.outcome->saved);
    EXPECT_EQ(ending.finished, 1);
  }
}

TEST(EndOfARun, CheckpointerThatFailsEndsTheRunAndNothingCountsAsSaved) {
  Toy toy;
  Ending ending(toy);
  ending.checkpointer.timer = [](Context& context, runtime::TimerId) {
    context.fail({ErrorKind::kData, "disk is gone"});
  };
  Script validator;
  const auto end = ending.run(1, validator);
  ASSERT_TRUE(end.error);
  EXPECT_THAT(end.error->message, HasSubstr("disk is gone"));
  EXPECT_FALSE(ending.outcome->saved);
}

// What does not come back by itself.
TEST(EndOfARun, MemberOnWhichSomethingFailsDuringTrainingEndsTheRunWithItsError) {
  Toy toy;
  Ending ending(toy);
  ending.replica.start = nullptr;
  ending.replica.receive = [&](Context& context, const Message& message) {
    if (message.as<BeginTraining>() != nullptr) {
      const Error broken{ErrorKind::kInternal, "loader: it broke"};
      context.send_control("coordinator", Message::of(MemberFailed{"loader", broken}));
    } else if (message.as<StopTraining>() != nullptr) {
      ReplicaEnd end;
      end.state = toy.state(2);
      context.send_control("coordinator", Message::of(std::move(end)));
    }
  };
  const auto end = ending.run(1, Script{});
  ASSERT_TRUE(end.error);
  EXPECT_THAT(end.error->message, HasSubstr("loader: it broke"));
  EXPECT_TRUE(ending.outcome->stopped);
  EXPECT_TRUE(ending.outcome->saved);
  EXPECT_EQ(ending.outcome->state, toy.state(2));
}

}  // namespace
}  // namespace troupe::actors
