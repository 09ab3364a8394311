// Trainings with actors in which workers take turns: as those without where both are the same, and
// the same bits again by the order of another run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "launch/run/head_run.h"
#include "launch/run/turn_order.h"
#include "pipeline/checkpoint/checkpoint.h"
#include "pipeline/checkpoint/checkpoint_folder.h"
#include "pipeline/steps/turn_update.h"
#include "tests/support/temporary_folder.h"
#include "tests/training/alone.h"

namespace troupe::training_test {
namespace {

using pipeline::TrainingState;

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  CHECK(a.size() == b.size() && !a.empty());
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

struct Trained {
  TrainingState state;
  std::string hash;
  std::string metrics;  // the path of its lines
};

// Trains with the actors, and reads the last checkpoint.
class TurnsOfActors : public ::testing::Test {
 protected:
  runtime::Result<launch::HeadRunResult> run(const std::string& name,
                                             std::vector<std::string> overrides,
                                             const std::string& order = "") {
    overrides.insert(overrides.end(),
                     {"actors.validator.every=none", "data.synthetic.events=128", "train.seed=3"});
    auto log = runtime::Log::silent();
    auto folder = launch::RunFolder::create(path(name), disk_).value();
    launch::HeadRunRequest request;
    request.loaded.topology = zoo_topology("gan3d_12", overrides);
    request.data_folder = scratch_.path() + "/data";
    request.order = order;
    return launch::run_locally(request, folder, disk_, log);
  }
  Trained trained(const std::string& name, const std::vector<std::string>& overrides,
                  const std::string& order = "") {
    const auto result = run(name, overrides, order);
    CHECK(result.ok(), result.ok() ? "" : result.error().message);
    CHECK(!result->error, result->error ? result->error->message : "");
    const std::string folder = path(name) + "/checkpoints";
    const auto files = pipeline::checkpoints_newest_first(disk_.list(folder).value());
    const std::string file = folder + "/" + files.front();
    const auto found = pipeline::inspect_checkpoint(disk_.read(file).value(), file);
    CHECK(found.ok(), found.ok() ? "" : found.error().message);
    return {found->state, found->state_hash.text(), metrics(name)};
  }
  std::string path(const std::string& name) const { return scratch_.path() + "/" + name; }
  std::string metrics(const std::string& name) const { return path(name) + "/metrics.jsonl"; }
  // The topology has four workers.
  static std::vector<std::string> words(const std::string& kind, int replicas = 1,
                                        int threads = 1) {
    return {"train.micro_batch=2",
            "train.micro_batches=8",
            "train.iterations=5",
            "train.epochs=20",
            "train.strategy={kind: " + kind + ", workers: 4, steps: 1}",
            "actors.replica.count=" + std::to_string(replicas),
            "actors.replica.threads=" + std::to_string(threads)};
  }

  const TemporaryFolder scratch_;
  runtime::FileDisk disk_;
};

// With one worker every turn is its own.
TEST_F(TurnsOfActors, OneWorkerOfDownpourTrainsAsWithout) {
  const std::vector<std::string> common{"train.micro_batch=4", "train.micro_batches=1",
                                        "train.learning_rate={g: 1e-4, d: 1e-4}",
                                        "train.optimiser={g: adam, d: adam}"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), common.begin(), common.end());
    return more;
  };
  const TrainingState a = trained("a", with({"train.iterations=12"})).state;
  const TrainingState b =
      trained("b",
              with({"train.iterations=4", "train.strategy={kind: downpour, workers: 1, steps: 3}"}))
          .state;
  const TrainingState c =
      trained("c", with({"train.iterations=4",
                         "train.strategy={kind: downpour, workers: 1, steps: 3, rate: 0.5}"}))
          .state;
  EXPECT_LT(largest_difference(a.generator.weights, b.generator.weights), 2e-5);
  EXPECT_LT(largest_difference(a.discriminator.weights, b.discriminator.weights), 2e-5);
  EXPECT_LT(largest_difference(a.discriminator.moving, b.discriminator.moving), 2e-4);
  EXPECT_GT(largest_difference(a.generator.weights, c.generator.weights), 2e-4);
  EXPECT_EQ(a.generator.counters, b.generator.counters);
  EXPECT_EQ(b.iteration, 4u);
  runtime::Hash128 order;
  for (int turn = 0; turn < 4; ++turn) order = pipeline::with_turn(order, 0);
  EXPECT_EQ(b.turns->order, order);
  EXPECT_EQ(b.ledger_events, 4u * 3 * 4);
}

class TurnsOfStrategy : public TurnsOfActors, public ::testing::WithParamInterface<const char*> {};

TEST_P(TurnsOfStrategy, OrderOfARunMakesItsBitsAgainOnAnyReplicasAndThreads) {
  const Trained first = trained("first", words(GetParam(), 3));
  const auto options = pipeline::options_between_members(
      zoo_topology("gan3d_12", words(GetParam())).train.options, {});
  const auto log = launch::read_turn_log(first.metrics, options, disk_);
  ASSERT_TRUE(log.ok()) << log.error().message;
  const auto strategy = options.strategy;
  EXPECT_EQ(log->order->size(), 20 + strategy.at_a_time()) << "and the turn behind the last step";
  EXPECT_EQ(trained("one", words(GetParam(), 1), first.metrics).hash, first.hash);
  EXPECT_EQ(trained("two", words(GetParam(), 2, 2), first.metrics).hash, first.hash);
  EXPECT_EQ(trained("five", words(GetParam(), 5), first.metrics).hash, first.hash);
}

// Four workers of two parts each: of more than four replicas some share one.
TEST_P(TurnsOfStrategy, SitesMakeTheBitsOfWorkersInTheSameOrder) {
  const auto sites = [&](int replicas, int threads = 1) {
    auto all = words(GetParam(), replicas, threads);
    all[4] = "train.strategy={kind: " + std::string(GetParam()) + ", sites: 4, steps: 1}";
    return all;
  };
  const Trained workers = trained("workers", words(GetParam(), 2));
  for (const int replicas : {1, 8}) {
    const std::string name = "sites" + std::to_string(replicas);
    EXPECT_EQ(trained(name, sites(replicas), workers.metrics).hash, workers.hash) << replicas;
  }
  const Trained free = trained("free", sites(6, 2));
  EXPECT_EQ(trained("again", words(GetParam()), free.metrics).hash, free.hash);
}

TEST_P(TurnsOfStrategy, AnotherOrderMakesOtherBits) {
  const Trained first = trained("first", words(GetParam()));
  std::string lines = read_text(first.metrics);
  // Workers 2 and 3 change places behind the first iteration.
  const std::size_t second = lines.find("\"iteration\":1,");
  for (std::size_t at = lines.find("\"turn\":", second); at != std::string::npos;
       at = lines.find("\"turn\":", at + 1)) {
    for (std::size_t i = at; lines[i] != '\n'; ++i) {
      if (lines[i] == '2' || lines[i] == '3') lines[i] = lines[i] == '2' ? '3' : '2';
    }
  }
  write_text(path("order"), lines);
  EXPECT_NE(trained("other", words(GetParam()), path("order")).hash, first.hash);
  EXPECT_EQ(trained("same", words(GetParam(), 2), first.metrics).hash, first.hash);
}

// The optimisers are RMSprop's, whose arrays go on from the mean of their workers'.
TEST_F(TurnsOfActors, QuorumOfOneIsDownpourAndOneOfAllIsLocal) {
  const auto with = [&](const std::string& strategy) {
    auto all = words("downpour");
    all[4] = "train.strategy={" + strategy + "workers: 4, steps: 2}";
    return all;
  };
  const Trained one = trained("one", with("kind: quorum, of: 1, rate: 0.5, "));
  const Trained downpour = trained("downpour", with("kind: downpour, rate: 0.5, "), one.metrics);
  EXPECT_EQ(downpour.hash, one.hash);
  const TrainingState all = trained("all", with("kind: quorum, of: 4, ")).state;
  const TrainingState local =
      trained("local", with("kind: local, outer: {rate: 1, momentum: 0}, ")).state;
  EXPECT_LT(largest_difference(all.generator.weights, local.generator.weights), 1e-5);
  EXPECT_LT(largest_difference(all.discriminator.weights, local.discriminator.weights), 1e-5);
  EXPECT_LT(largest_difference(all.discriminator.moving, local.discriminator.moving), 1e-4);
  EXPECT_LT(largest_difference(all.turns->workers[2].generator.optimiser_arrays,
                               local.generator.optimiser_arrays),
            1e-4);
  EXPECT_EQ(all.generator.counters, local.generator.counters);
  EXPECT_EQ(all.turns->workers[3].generator.counters, local.generator.counters);
  EXPECT_EQ(all.ledger_sum, local.ledger_sum) << "the same events, in the same steps";
}

INSTANTIATE_TEST_SUITE_P(Strategies, TurnsOfStrategy,
                         ::testing::Values("downpour", "easgd", "gem", "quorum, of: 3"));

TEST_F(TurnsOfActors, OrderOfAnotherRunIsRefusedAndSaysWhy) {
  const Trained of_turns = trained("turns", words("downpour"));
  const Trained plain =
      trained("plain", {"train.micro_batch=2", "train.micro_batches=2", "train.iterations=2"});
  const auto error = [&](const std::vector<std::string>& overrides, const std::string& order) {
    static int number = 0;
    const auto result = run("refused" + std::to_string(number++), overrides, order);
    CHECK(!result.ok(), "it is refused");
    return result.error().message;
  };
  EXPECT_THAT(error(words("downpour"), plain.metrics),
              testing::HasSubstr("its steps do not say whose turns they were"));
  EXPECT_THAT(error(words("local"), of_turns.metrics),
              testing::HasSubstr("train.strategy is local"));
  auto fewer = words("downpour");
  fewer[4] = "train.strategy={kind: downpour, workers: 2, steps: 1}";
  EXPECT_THAT(error(fewer, of_turns.metrics),
              testing::HasSubstr("one turn of each of 2, 1 at a time"));
  EXPECT_THAT(error(words("downpour"), path("none")), testing::HasSubstr("none"));
}

}  // namespace
}  // namespace troupe::training_test
