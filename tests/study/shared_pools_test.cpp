// Nodes of pools that the runs of a study share, by journals as heads write them.

#include "study/shared_pools.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <iterator>
#include <map>
#include <numeric>
#include <random>

#include "launch/pools/pool_journal.h"
#include "tests/study/study_support.h"

namespace troupe::study {
namespace {

using actors::PoolNodeState;
using testing::ElementsAre;
using testing::IsEmpty;

runtime::TimePoint at(double seconds) {
  return runtime::TimePoint(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)));
}

config::PoolSection pool_of(const std::string& name, std::uint32_t nodes) {
  config::PoolSection pool;
  pool.name = name;
  pool.nodes = nodes;
  return pool;
}

class SharedPoolsTest : public testing::Test {
 protected:
  std::string folder(std::uint32_t trial) const { return folder_ / fmt::format("{}", trial); }
  void begin(SharedPools& pools, std::uint32_t trial) const {
    std::filesystem::create_directories(folder(trial));
    pools.begin({trial}, folder(trial));
  }
  // As the head of the trial's run would note it.
  void note(std::uint32_t trial, const std::string& pool, std::uint32_t node,
            PoolNodeState state) const {
    auto journal = launch::PoolJournal::open(folder(trial) + "/pools.jsonl");
    ASSERT_TRUE(journal.ok()) << journal.error().message;
    actors::PoolNode noted;
    noted.name = fmt::format("{}.{}", pool, node);
    noted.pool = pool;
    noted.state = state;
    ASSERT_TRUE(journal->add(noted).ok());
  }

  const TemporaryFolder folder_;
};

TEST_F(SharedPoolsTest, NodesMoveToTheRunsThatAreLeftOnceTheyAreGone) {
  SharedPools pools({pool_of("own", 3), pool_of("none", 0)});
  begin(pools, 0);
  begin(pools, 1);
  EXPECT_THAT(pools.next(at(1)), ElementsAre(NodeWish{{0}, "own", 2}, NodeWish{{1}, "own", 1}));
  EXPECT_THAT(pools.next(at(9)), IsEmpty()) << "neither has answered";
  pools.answer({{0}, "own", 2}, SharedPools::Answer::kDone, at(10));
  pools.answer({{1}, "own", 1}, SharedPools::Answer::kDone, at(10));
  note(0, "own", 0, PoolNodeState::kRunning);
  note(0, "own", 1, PoolNodeState::kRunning);
  EXPECT_THAT(pools.next(at(11)), IsEmpty());
  begin(pools, 2);
  EXPECT_THAT(pools.next(at(12)), ElementsAre(NodeWish{{0}, "own", 1}));
  pools.answer({{0}, "own", 1}, SharedPools::Answer::kDone, at(12));
  EXPECT_THAT(pools.next(at(14)), IsEmpty()) << "the node that leaves has not gone";
  note(0, "own", 1, PoolNodeState::kGone);
  EXPECT_THAT(pools.next(at(16)), ElementsAre(NodeWish{{2}, "own", 1}));
  pools.answer({{2}, "own", 1}, SharedPools::Answer::kDone, at(16));
  pools.end({1});
  pools.end({2});
  EXPECT_THAT(pools.next(at(18)), ElementsAre(NodeWish{{0}, "own", 3}));
}

TEST_F(SharedPoolsTest, RunThatMayNotHaveHeardIsToldAgainAndItsNodesCount) {
  SharedPools pools({pool_of("own", 2)});
  begin(pools, 0);
  EXPECT_THAT(pools.next(at(1)), ElementsAre(NodeWish{{0}, "own", 2}));
  pools.answer({{0}, "own", 2}, SharedPools::Answer::kNone, at(2));
  begin(pools, 1);
  EXPECT_THAT(pools.next(at(3)), IsEmpty()) << "the first may have both";
  EXPECT_THAT(pools.next(at(13)), ElementsAre(NodeWish{{0}, "own", 1}));
  pools.answer({{0}, "own", 1}, SharedPools::Answer::kDone, at(13));
  EXPECT_THAT(pools.next(at(15)), ElementsAre(NodeWish{{1}, "own", 1}));
}

TEST_F(SharedPoolsTest, WishThatIsRefusedReservesNothing) {
  SharedPools pools({pool_of("own", 2)});
  begin(pools, 0);
  EXPECT_THAT(pools.next(at(1)), ElementsAre(NodeWish{{0}, "own", 2}));
  EXPECT_TRUE(pools.answer({{0}, "own", 2}, SharedPools::Answer::kRefused, at(2)));
  begin(pools, 1);
  EXPECT_THAT(pools.next(at(3)), ElementsAre(NodeWish{{1}, "own", 1}));
  EXPECT_THAT(pools.next(at(13)), ElementsAre(NodeWish{{0}, "own", 1}));
  EXPECT_FALSE(pools.answer({{0}, "own", 1}, SharedPools::Answer::kRefused, at(14)));
}

TEST_F(SharedPoolsTest, NodeOnItsWayOutCountsBesideThoseThatAreWanted) {
  SharedPools pools({pool_of("own", 3)});
  begin(pools, 0);
  EXPECT_THAT(pools.next(at(1)), ElementsAre(NodeWish{{0}, "own", 3}));
  pools.answer({{0}, "own", 3}, SharedPools::Answer::kDone, at(1));
  begin(pools, 1);
  EXPECT_THAT(pools.next(at(3)), ElementsAre(NodeWish{{0}, "own", 2}));
  pools.answer({{0}, "own", 2}, SharedPools::Answer::kDone, at(3));
  note(0, "own", 0, PoolNodeState::kRunning);
  note(0, "own", 1, PoolNodeState::kDraining);
  note(0, "own", 2, PoolNodeState::kGone);
  EXPECT_THAT(pools.next(at(5)), IsEmpty()) << "one is about to replace the one that leaves";
}

TEST_F(SharedPoolsTest, NodesThatAnEndedRunHasLeftBehindAreNobodys) {
  SharedPools pools({pool_of("own", 2)});
  begin(pools, 0);
  note(0, "own", 0, PoolNodeState::kStopping);
  pools.end({0});
  begin(pools, 1);
  EXPECT_THAT(pools.next(at(1)), ElementsAre(NodeWish{{1}, "own", 1}));
  pools.answer({{1}, "own", 1}, SharedPools::Answer::kDone, at(1));
  note(0, "own", 0, PoolNodeState::kGone);
  EXPECT_THAT(pools.next(at(3)), ElementsAre(NodeWish{{1}, "own", 2}));
}

// Runs begin and end, heads answer late, hear and do not answer, and start and stop nodes when they
// like.
TEST_F(SharedPoolsTest, NeverHaveMoreThanThereAreAndGetAllInTheEnd) {
  constexpr std::uint32_t kNodes = 5;
  struct Head {
    std::uint32_t wanted = 0, next = 0;
    std::vector<std::uint32_t> nodes, stopping;
  };
  std::mt19937 random(31);
  const auto drawn = [&](std::uint32_t below) { return random() % below; };
  SharedPools pools({pool_of("own", kNodes)});
  std::map<std::uint32_t, Head> heads;
  std::vector<NodeWish> wishes;
  const auto act = [&](std::uint32_t trial, Head& head) {
    if (!head.stopping.empty() && drawn(6) == 0) {
      note(trial, "own", head.stopping.back(), PoolNodeState::kGone);
      head.stopping.pop_back();
    }
    if (head.nodes.size() < head.wanted) {
      head.nodes.push_back(head.next);
      note(trial, "own", head.next++, PoolNodeState::kAsked);
    } else if (head.nodes.size() > head.wanted) {
      note(trial, "own", head.nodes.back(), PoolNodeState::kStopping);
      head.stopping.push_back(head.nodes.back());
      head.nodes.pop_back();
    }
  };
  std::uint32_t trials = 0;
  const auto step = [&](int time, bool changes) {
    if (changes && heads.size() < 3 && drawn(3) == 0) {
      begin(pools, trials);
      heads[trials++] = {};
    }
    if (changes && !heads.empty() && drawn(9) == 0) {
      const std::uint32_t trial =
          std::next(heads.begin(), drawn(static_cast<std::uint32_t>(heads.size())))->first;
      Head& head = heads[trial];
      for (head.wanted = 0; !head.nodes.empty() || !head.stopping.empty();) act(trial, head);
      pools.end({trial});
      heads.erase(trial);
    }
    for (NodeWish& wish : pools.next(at(time))) wishes.push_back(std::move(wish));
    while (!wishes.empty() && (!changes || drawn(2) == 0)) {
      const NodeWish wish = wishes.back();
      wishes.pop_back();
      const auto head = heads.find(wish.run.trial);
      const bool hears = !changes || drawn(4) > 0, answers = !changes || drawn(4) > 0;
      if (head != heads.end() && hears) head->second.wanted = wish.nodes;
      pools.answer(wish, hears && answers ? SharedPools::Answer::kDone : SharedPools::Answer::kNone,
                   at(time));
    }
    std::size_t all = 0;
    for (auto& [trial, head] : heads) {
      if (!changes || drawn(2) == 0) act(trial, head);
      all += head.nodes.size() + head.stopping.size();
    }
    ASSERT_LE(all, kNodes) << "at " << time;
  };
  constexpr int kChanges = 6000, kEnd = 6600;
  for (int time = 0; time < kChanges; time += 3) step(time, true);
  ASSERT_FALSE(heads.empty());
  for (int time = kChanges; time < kEnd; time += 3) step(time, false);
  std::size_t all = 0;
  for (const auto& [trial, head] : heads) all += head.nodes.size();
  EXPECT_EQ(all, kNodes);
}

}  // namespace
}  // namespace troupe::study
