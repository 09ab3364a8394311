#include "launch/run/memory_bounds.h"

#include <gmock/gmock.h>

#include <limits>

#include "config/plan.h"
#include "launch/run/networks.h"

namespace troupe::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kEnough = std::numeric_limits<double>::infinity();

// 1.0 GB for each process and 0.1 GB for each of its micro-batches, of which there are 8.
RunBounds bounds(const std::vector<std::int64_t>& micro_batches) {
  RunBounds bounds;
  bounds.arena_bytes = 300'000'000;
  bounds.state_bytes = 200'000'000;
  bounds.replicas = 2;
  for (const std::int64_t count : micro_batches) {
    bounds.share_bytes.push_back(count * 100'000'000);
    bounds.iteration_bytes += count * 100'000'000;
  }
  return bounds;
}

std::string refusal(const RunBounds& bounds, const std::vector<std::uint32_t>& here,
                    const UsableMemory& usable) {
  const auto fits = check_memory(bounds, here, usable);
  if (fits.ok()) return "";
  EXPECT_EQ(fits.error().kind, runtime::ErrorKind::kTopology);
  return fits.error().message;
}

TEST(CheckMemory, OneProcessMustFit) {
  EXPECT_EQ(refusal(bounds({8}), {0}, {1.8e9, 1.8e9}), "");
  const std::string message = refusal(bounds({8}), {0}, {1.79e9, 1.79e9});
  EXPECT_THAT(message,
              HasSubstr("a run needs 1.8 GB of memory or more, and 1.8 GB may be used here: 300.0 "
                        "MB of activations and 200.0 MB of state for each of 2 replicas, "
                        "800.0 MB for the micro-batches of an iteration; lower train."));
}

TEST(CheckMemory, SaysWorkersWhereTheseTrainAlone) {
  RunBounds of_workers = bounds({8});
  of_workers.of_workers = true;
  const std::string message = refusal(of_workers, {0}, {1.79e9, 1.79e9});
  EXPECT_THAT(message, HasSubstr("800.0 MB for the workers of an outer step; lower train."));
  EXPECT_THAT(message, HasSubstr("train.micro_batches, train.strategy.steps, actors."));
}

TEST(CheckMemory, AllProcessesOfThisMachineMustFitTogether) {
  EXPECT_EQ(refusal(bounds({4, 4}), {0, 1}, {2.8e9, 2.8e9}), "");
  const std::string message = refusal(bounds({4, 4}), {0, 1}, {2.7e9, 2.7e9});
  EXPECT_THAT(message, HasSubstr("a run needs 2.8 GB of memory or more on this machine, for 2 "
                                 "processes of up to 1.4 GB each, and 2.7 GB may be used here"));
  EXPECT_THAT(message, HasSubstr("lower the number of workers here, train.micro_batch"));
}

TEST(CheckMemory, ProcessesOfOtherMachinesDoNotCount) {
  EXPECT_EQ(refusal(bounds({4, 4}), {1}, {1.4e9, 1.4e9}), "");
  EXPECT_EQ(refusal(bounds({4, 4}), {}, {1, 1}), "");
  EXPECT_THAT(refusal(bounds({1, 7}), {1}, {1.6e9, 1.6e9}), HasSubstr("needs 1.7 GB"));
  EXPECT_EQ(refusal(bounds({1, 7}), {0}, {1.6e9, 1.6e9}), "");
}

TEST(CheckMemory, ALimitOfEachProcessIsNotSharedByThem) {
  EXPECT_EQ(refusal(bounds({4, 4}), {0, 1}, {kEnough, 1.4e9}), "");
  EXPECT_THAT(
      refusal(bounds({2, 6}), {0, 1}, {kEnough, 1.5e9}),
      HasSubstr(
          "a run needs 1.6 GB of memory or more in one process, and 1.5 GB may be used here"));
}

TEST(CheckMemory, EventsThatAreKeptCountInEveryProcess) {
  RunBounds kept = bounds({4, 4});
  EXPECT_EQ(refusal(kept, {0, 1}, {kEnough, 1.5e9}), "");
  kept.cache_bytes = 1'000'000'000;
  EXPECT_THAT(refusal(kept, {0, 1}, {kEnough, 1.5e9}),
              HasSubstr("1000.0 MB of events (data.shard_memory)"));
}

TEST(RunBounds, OnlyAShardHasABoundOfEvents) {
  const auto cache_bytes = [](const std::string& cache) {
    const auto loaded = config::parse_topology(
        "model: {zoo: toy}\ndata: {train: toy.h5, shard_memory: 3MiB, cache: " + cache + "}\n",
        "t.yaml", ".");
    return run_bounds(loaded.value(), 2).value().cache_bytes;
  };
  EXPECT_EQ(cache_bytes("shard"), 3 << 20);
  EXPECT_EQ(cache_bytes("memory"), 0);
}

TEST(RunBounds, MicroBatchesOfAWorkerThatTrainsAloneCount) {
  const auto arena_bytes = [](const std::string& micro_batches) {
    const auto loaded = config::parse_topology(
        "model: {zoo: toy}\ndata: {train: toy.h5}\n"
        "train: {strategy: {kind: local, workers: 2}, micro_batches: " +
            micro_batches + "}\n",
        "t.yaml", ".");
    return run_bounds(loaded.value(), 0).value().arena_bytes;
  };
  const std::int64_t one = arena_bytes("4") - arena_bytes("2");
  EXPECT_GT(one, 0);
  EXPECT_EQ(arena_bytes("8") - arena_bytes("4"), 2 * one);
}

TEST(RunBounds, MeanOfTheGeneratorsWeightsIsPartOfTheState) {
  const auto loaded = [](const std::string& train) {
    return config::parse_topology(
        "model: {zoo: toy}\ndata: {train: toy.h5}\ntrain: {" + train + "}\n", "t.yaml", ".");
  };
  const auto state_bytes = [&](const std::string& train) {
    return run_bounds(loaded(train).value(), 0).value().state_bytes;
  };
  const auto networks = compile_networks(loaded("").value().topology, 0);
  const std::int64_t numbers = networks.value().gan->generator().parameters().size();
  EXPECT_EQ(state_bytes("mean: 0.9"), state_bytes("") + 4 * numbers);
}

TEST(RunBounds, SharesAreThoseOfTheMembers) {
  const auto loaded = config::parse_topology(
      "model: {zoo: toy}\ndata: {train: toy.h5}\ntrain: {micro_batches: 8}\n"
      "actors: {replica: {count: 2}}\ncluster: {assign: [1, 3, 0]}\n",
      "t.yaml", ".");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const auto three = run_bounds(*loaded, 3);
  ASSERT_TRUE(three.ok()) << three.error().message;
  const std::int64_t one = three->iteration_bytes / 8;
  EXPECT_GT(one, 0);
  EXPECT_THAT(three->share_bytes, ElementsAre(2 * one, 6 * one, 0));
  EXPECT_EQ(three->replicas, 2u);
  const auto alone = run_bounds(*loaded, 0);
  ASSERT_TRUE(alone.ok()) << alone.error().message;
  EXPECT_THAT(alone->share_bytes, ElementsAre(8 * one));
  EXPECT_FALSE(run_bounds(*loaded, 2).ok()) << "shares of three";
}

TEST(RunBounds, LinksAreJudgedAsInTheRunThatHasPlacesForOthers) {
  const auto bounds_with = [](const std::string& link) {
    const auto loaded = config::parse_topology(
        "model: {zoo: toy}\ndata: {train: toy.h5}\ncluster: {failure: {restart: 2}, joiners: 3}\n"
        "links: [{from: reducer, to: reducer, " +
            link + "}]\n",
        "t.yaml", ".");
    EXPECT_TRUE(loaded.ok());
    return run_bounds(*loaded, 2);
  };
  const auto refused = bounds_with("credits: 1");
  ASSERT_FALSE(refused.ok());
  const std::string& message = refused.error().message;
  const std::size_t at = message.rfind("give ");
  ASSERT_NE(at, std::string::npos) << message;
  const auto advised = bounds_with("credits: " + std::to_string(std::stoi(message.substr(at + 5))));
  ASSERT_TRUE(advised.ok()) << advised.error().message;
  const auto loaded = config::parse_topology(
      "model: {zoo: toy}\ndata: {train: toy.h5}\ncluster: {failure: {restart: 2}, joiners: 3}\n",
      "t.yaml", ".");
  const auto plain = run_bounds(*loaded, 2);
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(runtime::print(advised->plan), runtime::print(plain->plan));
  EXPECT_THAT(runtime::print(plain->plan), HasSubstr("member.1"));
  EXPECT_THAT(runtime::print(plain->plan), Not(HasSubstr("member.2")));
  EXPECT_TRUE(runtime::check(plain->plan).empty());
}

TEST(RunBounds, WorkersAreJudgedWithTheScalingThatWasAskedFor) {
  const auto loaded = config::parse_topology(
      "model: {zoo: toy}\ndata: {train: toy.h5}\n"
      "train: {micro_batches: 40000, scaling: weak}\n",
      "t.yaml", ".");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_TRUE(run_bounds(*loaded, 1).ok());
  const auto two = run_bounds(*loaded, 2);
  ASSERT_FALSE(two.ok());
  EXPECT_THAT(two.error().message, HasSubstr("t.yaml:3:24: train.micro_batches: scaling: weak"));
}

// Every reducer has a link to every other one, and uses that to the next in the ring; one member at
// a time sends snapshots; and a replica is fed by its member's loader or by the head's.
TEST(RunBounds, CountOneLinkOfEveryReducerToAnother) {
  const auto loaded =
      config::parse_topology("model: {zoo: toy}\ndata: {train: toy.h5}\n", "t.yaml", ".");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const auto bounds = run_bounds(*loaded, 4);
  ASSERT_TRUE(bounds.ok()) << bounds.error().message;
  std::int64_t rest = 0, edge = 0, snapshots = 0;
  int edges = 0;
  for (const runtime::LinkPlan& link : runtime::links_of(bounds->plan)) {
    if (link.to_port == "snapshots") {
      snapshots = link.byte_credits;
      continue;
    }
    if (link.to_port != "ring") {
      const bool feeds = link.to_port == "batches";
      if (!feeds || link.from != config::kHeadLoader) rest += link.byte_credits;
      continue;
    }
    edge = link.byte_credits;
    ++edges;
  }
  EXPECT_EQ(edges, 4 * 3);
  EXPECT_EQ(bounds->message_bytes, rest + 4 * edge + 2 * snapshots);
  const auto alone = run_bounds(*loaded, 1);
  ASSERT_TRUE(alone.ok()) << alone.error().message;
  EXPECT_GT(bounds->arena_bytes, alone->arena_bytes) << "the sums of the newest step are kept";
}

}  // namespace
}  // namespace troupe::launch
