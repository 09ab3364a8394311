// Events that are kept only while they are wanted (data.cache: shard).

#include "pipeline/data/event_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "pipeline/data/dataset.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/support/fails_with.h"

namespace troupe::pipeline {
namespace {

using runtime::ErrorKind;
using Ids = std::vector<std::uint64_t>;

PackedEvents event_of(float value, std::size_t filled = 8) {
  std::vector<float> cells(64, 0.0F);
  std::fill_n(cells.begin(), filled, value);
  const std::span<const float> image = cells;
  return {{&image, 1}, Preprocessing{.threshold = 0, .min_ecal = -1, .scale = 1, .power = 1}};
}

TEST(EventShard, KeepsNoMoreThanItsBoundWhateverIsPut) {
  EventShard shard(4096);
  for (std::uint64_t id = 0; id < 100; ++id) {
    shard.put(id, event_of(1.0F, id % 64));
    ASSERT_LE(shard.bytes(), 4096u);
  }
  EXPECT_TRUE(shard.has(0));
  EXPECT_FALSE(shard.has(99));
  EXPECT_GT(shard.bytes(), 3000u);
  // Events that are let go make room.
  shard.keep_only(Ids{1, 3});
  EXPECT_FALSE(shard.has(0));
  EXPECT_TRUE(shard.has(1));
  shard.put(99, event_of(7.0F));
  std::vector<float> cells(64);
  shard.get(99).unpack(0, cells);
  EXPECT_EQ(cells.front(), 7.0F);
  shard.keep_only(Ids{});
  EXPECT_EQ(shard.bytes(), 0u);
}

TEST(EventShard, CapacityFollowsTheSizeOfEvents) {
  EventShard shard(1 << 20);
  const std::uint64_t guess = shard.capacity(64 * sizeof(float) * 16);
  for (std::uint64_t id = 0; id < 10; ++id) shard.put(id, event_of(1.0F));
  EXPECT_GT(shard.capacity(64 * sizeof(float) * 16), 5 * guess);
  for (std::uint64_t id = 10; id < shard.capacity(0); ++id) shard.put(id, event_of(1.0F));
  EXPECT_TRUE(shard.has(shard.capacity(0) - 1)) << "there is room for as many";
}

class ShardCache : public testing::Test {
 protected:
  ShardCache() {
    const std::size_t sizes[] = {20, 7, 13};
    for (std::size_t i = 0; i < 3; ++i) {
      SmallData data(sizes[i], i + 1);
      if (i != 1) data.images = {.chunk = {4, 3, 4, 5}, .shuffle = true, .gzip = 2};
      data.write(folder_ / "part_" + std::to_string(i) + ".h5");
    }
    options_.paths = {folder_ / "part_*.h5"};
    options_.split = DataSplit::kTrain;
  }

  Dataset open(CacheMode cache, std::uint64_t bytes = 1 << 20) {
    options_.cache = cache;
    options_.shard_bytes = bytes;
    return Dataset::open(options_).value();
  }
  static std::vector<float> images(Dataset& dataset, const Ids& ids) {
    Batch batch;
    const auto read = dataset.read(ids, batch);
    EXPECT_TRUE(read.ok()) << read.error().message;
    const auto values = batch.images.as<float>();
    return {values.begin(), values.end()};
  }

  TemporaryFolder folder_;
  DatasetOptions options_;
};

TEST_F(ShardCache, GivesWhatMemoryGivesWhateverIsWantedKeptAndMissing) {
  for (const std::uint64_t events : {0u, 22u}) {
    for (const int threads : {1, 3}) {
      options_.events = events;
      options_.threads = threads;
      Dataset memory = open(CacheMode::kMemory);
      for (const std::uint64_t bytes : {1u, 3000u, 1u << 20}) {
        Dataset shard = open(CacheMode::kShard, bytes);
        EXPECT_EQ(shard.fingerprint(), memory.fingerprint());
        EXPECT_EQ(shard.window_blocks(), 0u);
        EXPECT_EQ(shard.report().bytes_in_memory, 0u);
        std::mt19937 random(5);
        Ids all(memory.size());
        std::iota(all.begin(), all.end(), 0u);
        for (std::size_t reads = 0; reads < 6; ++reads) {
          std::shuffle(all.begin(), all.end(), random);
          const Ids wanted(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
          ASSERT_TRUE(shard.want(wanted, wanted.size() / (1 + reads % 3), reads).ok());
          for (std::size_t first = 0; first + 4 <= all.size(); first += 4) {
            const Ids ids(all.begin() + static_cast<std::ptrdiff_t>(first),
                          all.begin() + static_cast<std::ptrdiff_t>(first + 4));
            ASSERT_EQ(images(shard, ids), images(memory, ids)) << bytes << " " << reads;
          }
        }
      }
    }
  }
}

// So a file that goes away afterwards is not missed.
TEST_F(ShardCache, WantedEventsAreReadOnceAndOthersWhenTheyAreAskedFor) {
  Dataset shard = open(CacheMode::kShard);
  const Ids wanted{31, 3, 8, 22};
  ASSERT_TRUE(shard.want(wanted, wanted.size(), 0).ok());
  const Ids some{22, 31};
  const auto before = images(shard, some);
  // Those that stay wanted stay.
  for (int i = 0; i < 3; ++i)
    std::filesystem::resize_file(folder_ / "part_" + std::to_string(i) + ".h5", 100);
  ASSERT_TRUE(shard.want(some, some.size(), 0).ok());
  EXPECT_EQ(images(shard, some), before);
  Batch batch;
  EXPECT_THAT(shard.read(Ids{22, 5}, batch), FailsWith(ErrorKind::kData, "part_"));
  EXPECT_THAT(shard.want(Ids{5}, 1, 0), FailsWith(ErrorKind::kData, "part_"));
}

TEST_F(ShardCache, WhatIsReadWithLaterReadsIsThereBehindThem) {
  Dataset shard = open(CacheMode::kShard);
  Ids wanted(shard.size());
  std::iota(wanted.begin(), wanted.end(), 0u);
  ASSERT_TRUE(shard.want(wanted, wanted.size(), 3).ok());
  const auto first = images(shard, {0});
  images(shard, {1});
  images(shard, {2});
  for (int i = 0; i < 3; ++i)
    std::filesystem::remove(folder_ / "part_" + std::to_string(i) + ".h5");
  EXPECT_EQ(images(shard, {0}), first);
  EXPECT_EQ(images(shard, wanted).size(), wanted.size() * first.size());
}

// Only those in front are read, and what is there of the others stays.
TEST_F(ShardCache, EventsBehindTheFrontAreKeptAndNotReadForThemselves) {
  options_.paths = {folder_ / "part_0.h5", folder_ / "part_2.h5"};
  Dataset shard = open(CacheMode::kShard);
  const std::uint64_t last = shard.size() - 1;  // in the other file
  ASSERT_TRUE(shard.want(Ids{last}, 1, 0).ok());
  const auto before = images(shard, {last});
  ASSERT_TRUE(shard.want(Ids{0, last, last - 9}, 1, 0).ok());
  for (int i = 0; i < 3; ++i)
    std::filesystem::remove(folder_ / "part_" + std::to_string(i) + ".h5");
  EXPECT_EQ(images(shard, {last}), before);
  images(shard, {0});
  Batch batch;
  EXPECT_THAT(shard.read(Ids{last - 9}, batch), FailsWith(ErrorKind::kData, "part_"));
}

// The loader changes its threads while it reads.
TEST_F(ShardCache, OtherNumbersOfThreadsReadTheSame) {
  Dataset memory = open(CacheMode::kMemory);
  for (const CacheMode cache : {CacheMode::kShard, CacheMode::kNone}) {
    Dataset dataset = open(cache, 3000);
    Ids ids(memory.size());
    std::iota(ids.begin(), ids.end(), 0u);
    std::ranges::reverse(ids);
    for (const int threads : {1, 3, 1, 2}) {
      dataset.set_threads(threads);
      if (cache == CacheMode::kShard) {
        ASSERT_TRUE(dataset.want(ids, ids.size(), 2).ok());
      }
      ASSERT_EQ(images(dataset, ids), images(memory, ids)) << threads;
    }
  }
}

}  // namespace
}  // namespace troupe::pipeline
