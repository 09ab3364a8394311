// Which checkpoints are there when training, its end, and verdicts of validation come in turn.

#include "actors/checkpointer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Message;
using runtime::Script;
using testing::ElementsAre;

class CheckpointFiles : public testing::Test {
 protected:
  CheckpointFiles() {
    options_.folder = "run";
    options_.keep = 1;
  }

  // What the Checkpointer is told, one thing a second; each by the iteration of its state.
  void snapshot(std::uint64_t iteration) {
    told_.push_back([this, iteration](Context& context) {
      context.send("snapshots", Message::of(Snapshot{toy_.state(iteration)}));
    });
  }
  void validated(std::uint64_t iteration, double distance, const std::string& figure = "merit") {
    told_.push_back([this, iteration, distance, figure](Context& context) {
      context.send_control("checkpointer",
                           Message::of(ValidatedState{toy_.state(iteration), figure, distance}));
    });
  }
  void last(std::uint64_t iteration) {
    told_.push_back([this, iteration](Context& context) {
      context.send_control("checkpointer",
                           Message::of(LastState{toy_.state(iteration), 0, "replica.0"}));
    });
  }

  // Steps of the checkpoints in the folder when all was told, ascending.
  std::vector<std::uint64_t> left() {
    Script root;
    root.start = [](Context& context) { context.after(std::chrono::seconds(1)); };
    root.timer = [&, next = std::size_t{0}](Context& context, runtime::TimerId) mutable {
      if (next == told_.size()) return context.finish();
      told_[next++](context);
      context.after(std::chrono::seconds(1));
    };
    root.receive = [&](Context&, const Message& message) {
      if (const auto* done = message.as<LastStateDone>()) {
        answers_ += done->error ? 0 : 1;
        last_ = done->state;
      }
    };
    Script monitor;
    monitor.receive = [&](Context&, const Message& message) {
      if (message.as<EventMetrics>() != nullptr) ++written_;
    };
    Play play;
    play.actor("coordinator", root).actor("monitor", monitor).actor("checkpointer", [&] {
      return std::make_unique<Checkpointer>(options_, disk_, toy_.context().gan,
                                            toy_.context().options);
    });
    play.link("coordinator", "snapshots", "checkpointer", "snapshots");
    play.link("checkpointer", "metrics", "monitor", "metrics", runtime::Lane::kMetrics);
    const auto end = play.run(1);
    EXPECT_FALSE(end.error) << end.error->message;
    EXPECT_EQ(play.log_lines(), expected_log_);
    auto names = pipeline::checkpoints_newest_first(disk_.list("run").value());
    std::vector<std::uint64_t> steps;
    for (const std::string& name : names) steps.push_back(std::stoull(name.substr(5)));
    std::reverse(steps.begin(), steps.end());
    return steps;
  }
  void put(std::uint64_t step) {
    ASSERT_TRUE(disk_.replace("run/" + pipeline::checkpoint_name(step), {}).ok());
  }
  std::optional<pipeline::BestCheckpoint> best() {
    return pipeline::parse_best(disk_.text("run/best.json"));
  }

  Toy toy_;
  MemoryDisk disk_;
  CheckpointerOptions options_;
  std::vector<std::function<void(Context&)>> told_;
  int answers_ = 0;
  StatePointer last_;  // of the answer
  int written_ = 0;
  std::string expected_log_;
};

TEST_F(CheckpointFiles, NewestAndBestRemain) {
  for (const std::uint64_t iteration : {1, 2, 3, 4}) {
    snapshot(iteration);
    validated(iteration, iteration == 2 ? 0.5 : 0.7);
  }
  EXPECT_THAT(left(), ElementsAre(8, 16));
  EXPECT_EQ(best(), (pipeline::BestCheckpoint{8, "merit", 0.5}));
}

TEST_F(CheckpointFiles, LinksLeadToTheNewestAndTheBest) {
  for (const std::uint64_t iteration : {1, 2, 3, 4}) {
    snapshot(iteration);
    validated(iteration, iteration == 2 ? 0.5 : 0.7);
  }
  left();
  EXPECT_THAT(disk_.links(),
              ElementsAre(testing::Pair("run/best", pipeline::checkpoint_name(8)),
                          testing::Pair("run/latest", pipeline::checkpoint_name(16))));
}

TEST_F(CheckpointFiles, WhereThereAreNoLinksItIsSaidOnceAndCheckpointsAreKept) {
  disk_.refuse_links();
  expected_log_ =
      "checkpointer: no links for run/latest; the names of checkpoints and best.json tell\n";
  snapshot(1);
  validated(1, 0.5);
  snapshot(2);
  EXPECT_THAT(left(), ElementsAre(4, 8));
  EXPECT_EQ(best(), (pipeline::BestCheckpoint{4, "merit", 0.5}));
}

TEST_F(CheckpointFiles, BestIsWrittenAgainWhenItsVerdictComesAfterItHadToMakeRoom) {
  snapshot(1);
  snapshot(2);
  validated(1, 0.5);
  snapshot(3);
  validated(2, 0.6);
  EXPECT_THAT(left(), ElementsAre(4, 12));
  EXPECT_EQ(best(), (pipeline::BestCheckpoint{4, "merit", 0.5}));
}

TEST_F(CheckpointFiles, BestIsWrittenWhereNoCheckpointWasDue) {
  snapshot(5);
  validated(3, 0.5);
  validated(6, 0.4);
  validated(7, 0.6);
  last(8);
  EXPECT_THAT(left(), ElementsAre(24, 32));
  EXPECT_EQ(best(), (pipeline::BestCheckpoint{24, "merit", 0.4}));
  EXPECT_EQ(answers_, 1);
}

TEST_F(CheckpointFiles, ResumedRunKeepsTheBestOfTheRunBefore) {
  put(4);
  put(8);
  options_.written_step = 8;
  options_.best = {4, "merit", 0.5};
  snapshot(3);
  validated(3, 0.6);
  EXPECT_THAT(left(), ElementsAre(4, 12));
}

TEST_F(CheckpointFiles, DistancesOfDifferentFiguresDoNotCompare) {
  put(4);
  put(8);
  options_.written_step = 8;
  options_.best = {4, "merit", 0.5};
  snapshot(3);
  validated(3, 7.0, "longitudinal");
  snapshot(4);
  EXPECT_THAT(left(), ElementsAre(12, 16));
  EXPECT_EQ(best(), (pipeline::BestCheckpoint{12, "longitudinal", 7.0}));
}

TEST_F(CheckpointFiles, WithoutAFigureNoneIsTheBest) {
  snapshot(1);
  validated(1, std::numeric_limits<double>::infinity());
  snapshot(2);
  EXPECT_THAT(left(), ElementsAre(8));
  EXPECT_EQ(best(), std::nullopt);
}

// One that could not be read when the run went on from an older one.
TEST_F(CheckpointFiles, FileOfALaterStepDoesNotTakeTheNewestsPlace) {
  put(40);
  put(4);
  options_.written_step = 4;
  snapshot(2);
  last(3);
  EXPECT_THAT(left(), ElementsAre(12, 40));
  EXPECT_EQ(answers_, 1);
}

TEST_F(CheckpointFiles, StateThatIsNewerThanTheLastOneIsTheRunsLast) {
  snapshot(3);
  last(2);
  EXPECT_THAT(left(), ElementsAre(12));
  EXPECT_EQ(answers_, 1);
  ASSERT_NE(last_, nullptr);
  EXPECT_EQ(pipeline::hash_of_state(*last_), pipeline::hash_of_state(*toy_.state(3)));
}

TEST_F(CheckpointFiles, StateThatIsThereAlreadyIsNotWrittenAgain) {
  put(8);
  options_.written_step = 8;
  last(2);
  EXPECT_THAT(left(), ElementsAre(8));
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(written_, 0);
}

}  // namespace
}  // namespace troupe::actors
