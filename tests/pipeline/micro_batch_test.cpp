#include "pipeline/steps/micro_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace troupe::pipeline {
namespace {

using WorkerSpeeds = std::vector<std::uint64_t>;
using Members = std::vector<std::uint32_t>;

TEST(MicroBatch, QuotasFollowTheSpeeds) {
  const struct {
    std::uint32_t count;
    WorkerSpeeds speeds;
    Members quotas;
  } table[] = {
      {4, {1}, {4}},
      {4, {1, 1}, {2, 2}},
      {4, {1, 3}, {1, 3}},
      {5, {1, 1}, {3, 2}},         // the tie goes to the first
      {7, {1, 1, 1}, {3, 2, 2}},   //
      {10, {5, 3, 2}, {5, 3, 2}},  //
      {3, {1, 1, 1, 1, 1}, {1, 1, 1, 0, 0}},
      {2, {1000, 1}, {2, 0}},
      {6, {2, 0, 1}, {4, 0, 2}},  // a member with none is legal
      {0, {1, 2}, {0, 0}},
      {1, {1, 1000000000000}, {0, 1}},
  };
  for (const auto& row : table) {
    EXPECT_EQ(micro_batch_quotas(row.count, row.speeds), row.quotas);
  }
}

TEST(MicroBatch, EveryIndexHasExactlyOneOwner) {
  for (std::uint32_t count = 0; count < 40; ++count) {
    for (const WorkerSpeeds& speeds :
         {WorkerSpeeds{1}, WorkerSpeeds{3, 1, 4, 1, 5}, WorkerSpeeds{0, 7, 0}}) {
      const Members owners = assign_micro_batches(count, speeds);
      ASSERT_EQ(owners.size(), count);
      std::size_t sum = 0;
      for (std::uint32_t member = 0; member < speeds.size(); ++member) {
        sum += micro_batches_of(owners, member).size();
        if (speeds[member] == 0) {
          EXPECT_TRUE(micro_batches_of(owners, member).empty());
        }
      }
      EXPECT_EQ(sum, count);
    }
  }
}

TEST(MicroBatch, RangesAreContiguous) {
  EXPECT_EQ(assign_micro_batches(5, WorkerSpeeds{2, 1, 2}), (Members{0, 0, 1, 2, 2}));
  EXPECT_EQ(micro_batches_of(Members{0, 0, 1, 2, 2}, 2), (Members{3, 4}));
}

TEST(MicroBatch, WorkersOfSitesHaveMembersOfTheirOwn) {
  const struct {
    std::uint32_t workers, parts;
    WorkerSpeeds speeds;
    Members owners;
  } table[] = {
      {2, 4, {1, 1}, {0, 0, 0, 0, 1, 1, 1, 1}},
      {2, 4, {1, 1, 1, 1}, {0, 0, 1, 1, 2, 2, 3, 3}},
      {2, 4, {1, 1, 1}, {0, 0, 1, 1, 2, 2, 2, 2}},
      {2, 4, {3, 1, 1, 1}, {0, 0, 0, 0, 1, 1, 2, 3}},
      {2, 4, {0, 1, 0, 1}, {1, 1, 1, 1, 3, 3, 3, 3}},
      {3, 2, {1, 1}, {0, 0, 0, 0, 1, 1}},  // fewer members than workers: whole ones
      {1, 2, {1, 1, 1}, {0, 1}},           // nobody has less than a part
  };
  for (const auto& row : table) {
    EXPECT_EQ(assign_micro_batches(row.workers * row.parts, row.speeds, row.parts), row.owners);
  }
}

TEST(MicroBatch, SitesAreRangesOfTheOrderThatIsTold) {
  const WorkerSpeeds speeds{1, 1, 1, 0, 1};
  EXPECT_EQ(assign_micro_batches(8, speeds, 4, Members{4, 1, 3, 0, 2}),
            (Members{4, 4, 1, 1, 0, 0, 2, 2}));
  EXPECT_EQ(assign_micro_batches(8, speeds, 4, Members{4, 0}), (Members{4, 4, 4, 4, 0, 0, 0, 0}));
  EXPECT_EQ(assign_micro_batches(4, speeds, 1, Members{4, 1, 3, 0, 2}), (Members{0, 1, 2, 4}))
      << "there are no sites";
}

// At any speeds and after any loss: as long as there are members enough nobody has
// parts of two workers, and orphans go to their own site while it has anybody.
TEST(MicroBatch, NobodyIsOfTwoSitesAndSitesKeepTheirPartsWhileTheyHaveAnybody) {
  std::mt19937 dice(7);
  const auto draw = [&](std::uint32_t most) { return static_cast<std::uint32_t>(dice() % most); };
  for (int round = 0; round < 2000; ++round) {
    const std::uint32_t workers = 1 + draw(4), parts = 2 + draw(4);
    WorkerSpeeds speeds(workers + draw(8), 0);
    for (auto& speed : speeds) speed = 1 + draw(1000);
    const Members owners = assign_micro_batches(workers * parts, speeds, parts);
    std::vector<std::set<std::uint32_t>> sites(speeds.size());
    for (std::uint32_t i = 0; i < owners.size(); ++i) sites[owners[i]].insert(i / parts);
    for (const auto& of_member : sites) ASSERT_LE(of_member.size(), 1u) << "round " << round;
    for (auto& speed : speeds) speed *= draw(3) == 0 ? 0 : 1;
    if (std::ranges::all_of(speeds, [](auto speed) { return speed == 0; })) continue;
    const Members after = reassign_micro_batches(owners, speeds, parts);
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
      std::set<std::uint32_t> left, then;
      for (std::uint32_t i = worker * parts; i < (worker + 1) * parts; ++i) {
        if (speeds[owners[i]] > 0) left.insert(owners[i]);
        then.insert(after[i]);
        ASSERT_GT(speeds[after[i]], 0u) << "round " << round;
      }
      if (left.empty()) continue;
      ASSERT_EQ(then, left) << "round " << round;
    }
  }
}

TEST(MicroBatch, SurvivorsKeepWhatTheyHave) {
  const struct {
    Members owners;
    WorkerSpeeds speeds;
    Members result;
  } table[] = {
      {{0, 0, 1, 1, 2, 2}, {1, 0, 1}, {0, 0, 0, 2, 2, 2}},  // member 1 died
      {{0, 0, 1, 1, 2, 2}, {0, 0, 1}, {2, 2, 2, 2, 2, 2}},  // only one left
      {{0, 0, 1, 1}, {1, 1}, {0, 0, 1, 1}},                 // nobody died
      {{0, 1, 2, 3}, {1, 1, 1}, {0, 1, 2, 0}},              // member 3 is no longer known
      {{0, 1, 1, 1, 2, 2}, {3, 0, 1}, {0, 0, 0, 0, 2, 2}},  // to the one furthest below its share
      {{0, 1, 1}, {1, 0, 5}, {0, 2, 2}},                    // to one that had none
  };
  for (const auto& row : table) {
    EXPECT_EQ(reassign_micro_batches(row.owners, row.speeds), row.result);
  }
}

TEST(MicroBatchDeathTest, NobodyWhoCanWorkIsABrokenInvariant) {
  EXPECT_DEATH(micro_batch_quotas(3, WorkerSpeeds{0, 0}), "at least one member");
  EXPECT_DEATH(micro_batch_quotas(3, WorkerSpeeds{}), "at least one member");
  EXPECT_DEATH(micro_batch_quotas(3, WorkerSpeeds{UINT64_MAX, 1}), "64 bits");
}

}  // namespace
}  // namespace troupe::pipeline
