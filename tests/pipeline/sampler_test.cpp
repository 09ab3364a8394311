#include "pipeline/data/sampler.h"
#include "tests/support/fails_with.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace troupe::pipeline {
namespace {

Sampler sampler_of(const SamplerOptions& options) {
  auto sampler = Sampler::create(options);
  CHECK(sampler.ok());
  return std::move(sampler).value();
}

std::vector<std::uint64_t> epoch_of(const SamplerOptions& options, std::uint64_t epoch) {
  const EpochOrder order(options, epoch);
  std::vector<std::uint64_t> events;
  for (std::uint64_t i = 0; i < options.events; ++i) events.push_back(order.event(i));
  return events;
}

bool is_permutation_of_all(std::vector<std::uint64_t> events) {
  std::sort(events.begin(), events.end());
  for (std::uint64_t i = 0; i < events.size(); ++i) {
    if (events[i] != i) return false;
  }
  return true;
}

std::vector<std::uint64_t> micro_batch(Sampler& sampler, std::uint64_t iteration,
                                       std::uint32_t index) {
  std::vector<std::uint64_t> ids(sampler.options().micro_batch);
  sampler.event_ids(iteration, index, ids);
  return ids;
}

TEST(Permutation, VisitsEverythingOnceForEverySmallCount) {
  for (std::uint64_t count = 1; count < 300; ++count) {
    const Permutation permutation(count, 7, count);
    std::vector<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < count; ++i) seen.push_back(permutation(i));
    ASSERT_TRUE(is_permutation_of_all(seen)) << count;
  }
}

TEST(Permutation, WorksForCountsNearItsLimit) {
  const std::uint64_t count = (std::uint64_t{1} << 62) - 3;
  const Permutation permutation(count, 1, 2);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ASSERT_LT(permutation(count - 1 - i), count);
    seen.insert(permutation(count - 1 - i));
  }
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(Permutation, PutsEveryEventAtEveryPlaceEquallyOften) {
  constexpr std::uint64_t kCount = 20;
  constexpr int kEpochs = 8000;
  std::vector<int> seen(kCount * kCount, 0);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const Permutation permutation(kCount, 3, static_cast<std::uint64_t>(epoch));
    for (std::uint64_t i = 0; i < kCount; ++i) ++seen[i * kCount + permutation(i)];
  }
  const double want = kEpochs / static_cast<double>(kCount);
  double chi2 = 0;
  for (const int n : seen) chi2 += (n - want) * (n - want) / want;
  // 19 x 19 degrees of freedom, five sigma.
  EXPECT_LT(chi2, 361 + 5 * 26.9);
}

TEST(Permutation, NeighboursInOrderAreNoNeighboursInTheData) {
  constexpr std::uint64_t kCount = 10000;
  const Permutation permutation(kCount, 11, 0);
  int close = 0;
  for (std::uint64_t i = 0; i + 1 < kCount; ++i) {
    const std::uint64_t a = permutation(i);
    const std::uint64_t b = permutation(i + 1);
    close += (a > b ? a - b : b - a) <= 10;
  }
  // 21 in 10000 of all pairs; five sigma of about 20.
  EXPECT_LT(close, 45);
}

TEST(Sampler, EveryEventOncePerEpochAndEpochsDiffer) {
  const SamplerOptions options{.events = 1000, .seed = 5};
  const auto first = epoch_of(options, 0);
  const auto second = epoch_of(options, 1);
  EXPECT_TRUE(is_permutation_of_all(first));
  EXPECT_TRUE(is_permutation_of_all(second));
  EXPECT_NE(first, second);
  EXPECT_NE(first, epoch_of({.events = 1000, .seed = 6}, 0));
}

TEST(Sampler, WindowsHoldWholeBlocksAndEveryEventOnce) {
  SamplerOptions options{.seed = 2, .window_blocks = 3};
  for (std::uint32_t i = 0; i < 20; ++i) options.blocks.push_back(1 + i % 5);
  options.events = std::accumulate(options.blocks.begin(), options.blocks.end(), 0u);
  std::vector<std::uint32_t> block_of;
  for (std::uint32_t i = 0; i < 20; ++i) block_of.insert(block_of.end(), options.blocks[i], i);
  std::set<std::vector<std::uint64_t>> orders;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const auto events = epoch_of(options, epoch);
    ASSERT_TRUE(is_permutation_of_all(events));
    orders.insert(events);
    // Once a block is left for a later window it never comes back.
    std::size_t begin = 0;
    for (int window = 0; window < 7; ++window) {
      std::set<std::uint32_t> blocks;
      std::size_t size = 0;
      for (std::size_t i = begin; i < events.size(); ++i) {
        if (blocks.size() == 3 && !blocks.contains(block_of[events[i]])) break;
        blocks.insert(block_of[events[i]]);
        ++size;
      }
      std::size_t held = 0;
      for (const std::uint32_t block : blocks) held += options.blocks[block];
      ASSERT_EQ(size, held) << "epoch " << epoch << " window " << window;
      begin += size;
    }
    ASSERT_EQ(begin, events.size());
  }
  EXPECT_EQ(orders.size(), 20u);
}

TEST(Sampler, MicroBatchesTileTheEpochAndTheRemainderIsReported) {
  Sampler sampler = sampler_of({.events = 107, .seed = 3, .micro_batch = 5, .micro_batches = 4});
  EXPECT_EQ(sampler.iterations_per_epoch(), 5u);
  EXPECT_EQ(sampler.dropped_per_epoch(), 7u);
  std::set<std::uint64_t> seen;
  for (std::uint64_t iteration = 0; iteration < 5; ++iteration) {
    for (std::uint32_t index = 0; index < 4; ++index) {
      const auto ids = micro_batch(sampler, iteration, index);
      seen.insert(ids.begin(), ids.end());
    }
  }
  EXPECT_EQ(seen.size(), 100u);
  const EpochOrder second(sampler.options(), 1);
  EXPECT_EQ(micro_batch(sampler, 5, 0).front(), second.event(0));
  EXPECT_EQ(micro_batch(sampler, 7, 0).front(), second.event(40));
}

TEST(Sampler, CarriedEventsBeginTheNextIterationAndEachComesOnceInAnOrder) {
  const SamplerOptions options{.events = 107,
                               .seed = 3,
                               .micro_batch = 5,
                               .micro_batches = 4,
                               .remainder = Remainder::kCarry};
  Sampler sampler = sampler_of(options);
  EXPECT_EQ(sampler.iterations_per_epoch(), 5u);
  EXPECT_EQ(sampler.dropped_per_epoch(), 0u);
  std::vector<std::uint64_t> taken;
  for (std::uint64_t iteration = 0; iteration < 16; ++iteration) {
    for (std::uint32_t index = 0; index < 4; ++index) {
      const auto ids = micro_batch(sampler, iteration, index);
      taken.insert(taken.end(), ids.begin(), ids.end());
    }
  }
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    const auto order = epoch_of(options, epoch);
    EXPECT_TRUE(std::equal(order.begin(), order.end(),
                           taken.begin() + static_cast<std::ptrdiff_t>(107 * epoch)));
  }
  // The first epoch is the same as without carrying.
  SamplerOptions dropping = options;
  dropping.remainder = Remainder::kDrop;
  Sampler other = sampler_of(dropping);
  EXPECT_EQ(micro_batch(sampler, 4, 3), micro_batch(other, 4, 3));
  EXPECT_NE(micro_batch(sampler, 5, 0), micro_batch(other, 5, 0));
}

TEST(Sampler, PartialIterationTakesTheMicroBatchesThatAreLeftAndEachEventComesOnceInAnEpoch) {
  const SamplerOptions options{.events = 113,
                               .seed = 3,
                               .micro_batch = 5,
                               .micro_batches = 4,
                               .remainder = Remainder::kPartial};
  Sampler sampler = sampler_of(options);
  EXPECT_EQ(sampler.iterations_per_epoch(), 6u);
  EXPECT_EQ(sampler.dropped_per_epoch(), 3u);
  std::uint64_t iteration = 0;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::uint64_t> taken;
    for (; iteration < 6 * (epoch + 1); ++iteration) {
      EXPECT_EQ(sampler.micro_batches_in(iteration), iteration % 6 == 5 ? 2u : 4u);
      for (std::uint32_t index = 0; index < sampler.micro_batches_in(iteration); ++index) {
        const auto ids = micro_batch(sampler, iteration, index);
        taken.insert(taken.end(), ids.begin(), ids.end());
      }
    }
    auto order = epoch_of(options, epoch);
    order.resize(110);
    EXPECT_EQ(taken, order);
  }
  EXPECT_DEATH(micro_batch(sampler, 5, 2), "index < parts_in");
}

TEST(Sampler, PartialIsAsDropWhereNoMicroBatchIsLeft) {
  for (const std::uint64_t events : {100u, 104u}) {
    SamplerOptions options{.events = events, .seed = 3, .micro_batch = 5, .micro_batches = 4};
    Sampler dropping = sampler_of(options);
    options.remainder = Remainder::kPartial;
    Sampler partial = sampler_of(options);
    EXPECT_EQ(partial.short_iteration().every, 0u);
    EXPECT_EQ(partial.iterations_per_epoch(), 5u);
    EXPECT_EQ(partial.dropped_per_epoch(), dropping.dropped_per_epoch());
    for (std::uint64_t iteration = 0; iteration < 12; ++iteration) {
      EXPECT_EQ(micro_batch(partial, iteration, 3), micro_batch(dropping, iteration, 3));
    }
  }
}

TEST(ShortIteration, OwnersKeepTheirSharesOfFewerMicroBatches) {
  const ShortIteration some{.every = 3, .micro_batches = 3};
  const std::vector<std::uint32_t> owners{0, 0, 1, 1, 2, 2};
  EXPECT_EQ(some.owners_in(1, owners), owners);
  EXPECT_EQ(some.owners_in(5, owners), (std::vector<std::uint32_t>{0, 1, 2}));
  // One that survives keeps its own where those of another are given away.
  EXPECT_EQ(some.owners_in(2, std::vector<std::uint32_t>{0, 0, 0, 2, 2, 2}),
            (std::vector<std::uint32_t>{0, 0, 2}));
  EXPECT_EQ(some.micro_batches_in(4, 6), 6u);
  EXPECT_EQ(some.micro_batches_in(2, 6), 3u);
  EXPECT_EQ(ShortIteration{}.owners_in(0, owners), owners);
}

// Two micro-batches of twelve events in three runs, of which each of two parts has half.
TEST(Sampler, PartHasItsShareOfEachRunOfItsMicroBatch) {
  SamplerOptions options{.events = 30, .seed = 3, .micro_batch = 12, .micro_batches = 2};
  options.shuffle = false;
  options.parts = 2;
  options.runs = 3;
  Sampler sampler = sampler_of(options);
  EXPECT_EQ(sampler.parts_in(0), 4u);
  const auto part = [&](std::uint32_t index) {
    std::vector<std::uint64_t> ids(6);
    sampler.event_ids(0, index, ids);
    return ids;
  };
  EXPECT_EQ(part(0), (std::vector<std::uint64_t>{0, 1, 4, 5, 8, 9}));
  EXPECT_EQ(part(1), (std::vector<std::uint64_t>{2, 3, 6, 7, 10, 11}));
  EXPECT_EQ(part(3), (std::vector<std::uint64_t>{14, 15, 18, 19, 22, 23}));
}

TEST(Sampler, WithoutShufflingTheOrderIsThatOfTheDataInEveryEpoch) {
  for (const std::uint32_t window : {0u, 2u}) {
    SamplerOptions options{.events = 45, .seed = 3, .micro_batch = 5, .micro_batches = 2};
    options.window_blocks = window;
    options.blocks = {20, 20, 5};
    options.shuffle = false;
    Sampler sampler = sampler_of(options);
    EXPECT_EQ(micro_batch(sampler, 0, 1), (std::vector<std::uint64_t>{5, 6, 7, 8, 9}));
    EXPECT_EQ(micro_batch(sampler, 4, 0), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  }
}

TEST(Sampler, AnswerDoesNotDependOnWhatWasAskedBefore) {
  const SamplerOptions options{.events = 500, .seed = 4, .micro_batch = 8, .micro_batches = 2};
  Sampler wandering = sampler_of(options);
  Sampler fresh = sampler_of(options);
  micro_batch(wandering, 7 * 31 + 1, 1);
  micro_batch(wandering, 2 * 31, 0);
  EXPECT_EQ(micro_batch(wandering, 3 * 31 + 2, 1), micro_batch(fresh, 3 * 31 + 2, 1));
}

TEST(Sampler, TooFewEventsForOneIterationIsAnError) {
  ASSERT_THAT(Sampler::create({.events = 19, .micro_batch = 5, .micro_batches = 4}),
              FailsWith(runtime::ErrorKind::kData, "has 19 events, and one iteration takes 20"));
}

// The order is part of a run's result: whoever changes it changes every trained bit.
TEST(Sampler, OrderIsTheOneOfVersionOne) {
  const EpochOrder order({.events = 100000, .seed = 1}, 0);
  std::vector<std::uint64_t> first;
  for (std::uint64_t i = 0; i < 4; ++i) first.push_back(order.event(i));
  EXPECT_EQ(first, (std::vector<std::uint64_t>{30610, 79365, 72457, 68073}));
}

}  // namespace
}  // namespace troupe::pipeline
