#include "study/worker_shares.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

namespace troupe::study {
namespace {

using Counts = std::vector<std::uint32_t>;

TEST(WorkerShares, AreEqualOrOneMoreForThoseThatBeganFirst) {
  EXPECT_EQ(worker_shares(7, 3), (Counts{3, 2, 2}));
  EXPECT_EQ(worker_shares(6, 3), (Counts{2, 2, 2}));
  EXPECT_EQ(worker_shares(5, 1), Counts{5});
  EXPECT_EQ(worker_shares(2, 3), (Counts{1, 1, 1}));
  EXPECT_TRUE(worker_shares(4, 0).empty());
}

TEST(WorkerShares, LastRunGetsAllAndANewOneItsPart) {
  EXPECT_EQ(member_changes(4, {{0, 0}}), (std::vector<MemberChange>{{0, 3}}));
  // Nobody comes until those that leave are gone.
  EXPECT_EQ(member_changes(4, {{3, 0}, {0, 0}}), (std::vector<MemberChange>{{2, 0}, {0, 0}}));
  EXPECT_EQ(member_changes(4, {{1, 2}, {0, 0}}), (std::vector<MemberChange>{{0, 0}, {0, 0}}));
  EXPECT_EQ(member_changes(4, {{1, 0}, {0, 0}}), (std::vector<MemberChange>{{0, 0}, {0, 1}}));
  EXPECT_EQ(member_changes(4, {{1, 0}, {1, 0}}), (std::vector<MemberChange>{{0, 0}, {0, 0}}));
}

TEST(WorkerShares, RunsThatBeginWithNobodyShareAll) {
  EXPECT_EQ(worker_shares(2, 3, 0), (Counts{1, 1, 0}));
  EXPECT_EQ(member_changes(3, {{0, 0}, {0, 0}}, 0), (std::vector<MemberChange>{{0, 2}, {0, 1}}));
  EXPECT_EQ(member_changes(2, {{2, 0}, {0, 0}}, 0), (std::vector<MemberChange>{{1, 0}, {0, 0}}));
}

TEST(WorkerShares, RunWhoseMembersFailGetsNoMore) {
  EXPECT_EQ(member_changes(4, {{0, 0, false}, {0, 0}}),
            (std::vector<MemberChange>{{0, 0}, {0, 1}}));
}

// Runs begin and end, members go at once or later, and some are killed.
TEST(WorkerShares, AreReachedWhateverHappensAndNeverExceeded) {
  constexpr std::uint32_t kWorkers = 7;
  std::vector<RunMembers> runs;
  std::uint32_t number = 1;
  const auto drawn = [&](std::uint32_t below) {
    number = number * 1664525u + 1013904223u;
    return (number >> 16) % below;
  };
  const auto carry_out = [&] {
    const std::uint32_t before = std::accumulate(
        runs.begin(), runs.end(), 0u,
        [](std::uint32_t sum, const RunMembers& run) { return sum + 1 + run.here + run.leaving; });
    const auto changes = member_changes(kWorkers, runs);
    std::uint32_t after = before;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      ASSERT_LE(changes[i].leave, runs[i].here);
      runs[i].here = runs[i].here - changes[i].leave + changes[i].come;
      runs[i].leaving += changes[i].leave;
      after += changes[i].come;
    }
    EXPECT_LE(after, std::max(before, kWorkers));
  };
  for (int step = 0; step < 2000; ++step) {
    const std::uint32_t event = drawn(4);
    if (event == 0 && runs.size() < 4) runs.push_back({});
    if (event == 1 && !runs.empty()) runs.erase(runs.begin() + drawn(runs.size()));
    if (event == 2 && !runs.empty()) {
      RunMembers& run = runs[drawn(runs.size())];
      if (run.here > 0) --run.here;
    }
    for (RunMembers& run : runs) run.leaving -= run.leaving > 0 ? drawn(run.leaving + 1) : 0;
    carry_out();
  }
  for (int i = 0; i < 3; ++i) {
    for (RunMembers& run : runs) run.leaving = 0;
    carry_out();
  }
  const std::vector<std::uint32_t> shares = worker_shares(kWorkers, runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) EXPECT_EQ(runs[i].here + 1, shares[i]) << i;
}

}  // namespace
}  // namespace troupe::study
