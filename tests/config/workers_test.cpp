#include "config/workers.h"

#include <gmock/gmock.h>

#include "config/plan.h"
#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string kThreeWorkers =
    kLeast + "cluster:\n  hosts: [{address: a, workers: 2}, {address: b}]\n";

TEST(Workers, AreThoseOfTheHostsUnlessTheCommandLineSaysOtherwise) {
  EXPECT_EQ(workers_of(parsed(kLeast).topology, {}), 0u);
  EXPECT_EQ(workers_of(parsed(kLeast).topology, 2), 2u);
  EXPECT_EQ(workers_of(parsed(kThreeWorkers).topology, {}), 3u);
  EXPECT_EQ(workers_of(parsed(kThreeWorkers).topology, 0), 0u);
  EXPECT_EQ(workers_of(parsed(kLeast + "cluster: {hosts: []}\n").topology, {}), 0u);
}

std::string problem_with(const std::string& text, std::uint32_t workers,
                         const std::vector<std::string>& overrides = {}) {
  const LoadedTopology loaded = parsed(text, overrides);
  const auto checked = check_workers(loaded.topology, workers, loaded.origins);
  if (checked.ok()) return "";
  EXPECT_EQ(checked.error().kind, runtime::ErrorKind::kTopology);
  return checked.error().message;
}

TEST(Workers, SharesAreTheirsOrAllEqual) {
  const std::string uneven = kThreeWorkers + "  assign: [1, 3, 0]\n";
  EXPECT_THAT(replica_weights(parsed(kThreeWorkers).topology, 3), ElementsAre(1, 1, 1));
  EXPECT_THAT(replica_weights(parsed(uneven).topology, 3), ElementsAre(1, 3, 0));
  EXPECT_EQ(problem_with(uneven, 3), "");
  EXPECT_EQ(problem_with(uneven, 2),
            "t.yaml:5:11: cluster.assign: 3 shares for 2 workers; give one for each, or auto");
}

TEST(Workers, AreAtLeastAsManyAsTheRunGoesOnWith) {
  const std::string text = kThreeWorkers + "  failure: {min_members: 3}\n";
  EXPECT_EQ(problem_with(text, 3), "");
  EXPECT_EQ(problem_with(text, 2),
            "t.yaml:5:26: cluster.failure.min_members: 3 is more than the 2 workers that the run "
            "begins with");
  EXPECT_EQ(problem_with(text, 0), "") << "a run in one process does not look at it";
}

TEST(Workers, AreAtMostAsManyAsARunHas) {
  const std::string text = kLeast +
                           "cluster: {hosts: [{address: a, workers: 1000}, {address: b, "
                           "workers: 25}]}\n";
  EXPECT_EQ(problem_with(text, workers_of(parsed(text).topology, {})),
            "t.yaml:3:18: cluster.hosts: 1025 workers together; a run has at most 1024");
  EXPECT_EQ(problem_with(text, 2), "") << "--workers takes the hosts' place";
}

TEST(Workers, SharesAreJudgedByTheWorkersThereAre) {
  const std::string text =
      kLeast + "cluster: {assign: [1, 3], hosts: [{address: a, workers: 3}]}\n";
  EXPECT_EQ(problem_with(text, 3),
            "t.yaml:3:19: cluster.assign: 2 shares for 3 workers; give one for each, or auto");
  EXPECT_EQ(problem_with(text, 2), "");
  EXPECT_EQ(problem_with(text, 0), "");
}

TEST(Workers, MultiplyMicroBatchesUpToWhatAnIterationHas) {
  const std::string text = kLeast + "train: {micro_batches: 4096, scaling: weak}\n";
  EXPECT_EQ(problem_with(text, 0), "");
  EXPECT_EQ(problem_with(text, 16), "");
  EXPECT_EQ(problem_with(text, 17),
            "t.yaml:3:24: train.micro_batches: scaling: weak makes 4096 x 17 workers = 69632 of "
            "them in an iteration, which has at most 65536");
  EXPECT_EQ(problem_with(text, 17, {"train.scaling=strong"}), "");
}

TEST(Workers, MultiplyTheEventsAnIterationTakes) {
  const std::string text =
      "model: {zoo: gan3d_25}\ndata: {train: synthetic, synthetic: {events: 100}}\n"
      "train: {micro_batch: 4, micro_batches: 2, scaling: weak}\n"
      "cluster: {hosts: [{address: a, workers: 20}]}\n";
  EXPECT_EQ(problem_with(text, 1), "");
  EXPECT_EQ(problem_with(text, 0), "");
  EXPECT_EQ(problem_with(text, 20),
            "t.yaml:2:46: data.synthetic.events: 100 generated events with test_one_in 10 leave 90 "
            "for training, but an iteration takes micro_batch x micro_batches x workers = 160");
  EXPECT_EQ(problem_with(text, 20, {"train.scaling=strong"}), "");
}

TEST(Workers, AutoTakesSharesBack) {
  const LoadedTopology loaded =
      parsed(kThreeWorkers + "  assign: [1, 3, 0]\n", {"cluster.assign=auto"});
  EXPECT_THAT(loaded.topology.cluster.shares, IsEmpty());
}

}  // namespace
}  // namespace troupe::config
