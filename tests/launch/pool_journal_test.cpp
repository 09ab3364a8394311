#include "launch/pools/pool_journal.h"

#include <gmock/gmock.h>

#include <chrono>
#include <fstream>

#include <fmt/format.h>

#include "tests/launch/launch_support.h"

namespace troupe::launch {
namespace {

using actors::PoolNodeState;
using testing::ElementsAre;
using testing::Pair;

class PoolJournalTest : public testing::Test {
 protected:
  PoolJournal open() {
    auto opened = PoolJournal::open(path_);
    EXPECT_TRUE(opened.ok());
    return std::move(*opened);
  }
  TemporaryFolder folder_;
  const std::string path_ = folder_ / "pools.jsonl";
};

TEST_F(PoolJournalTest, NextHeadGoesOnFromWhatIsWritten) {
  std::string run;
  runtime::WallTime began;
  {
    PoolJournal journal = open();
    run = journal.history().run;
    began = journal.history().began;
    ASSERT_TRUE(journal.add({.name = "hpc.0", .pool = "hpc", .id = "17"}).ok());
    ASSERT_TRUE(journal.add_wanted("hpc", 3).ok());
    ASSERT_TRUE(journal.add_work({{"", 10.5}, {"hpc", 4.5}}, {{7200.0, 1.25}}).ok());
  }
  const PoolHistory history = open().history();
  EXPECT_EQ(history.run, run);
  EXPECT_EQ(history.began, std::chrono::floor<std::chrono::milliseconds>(began));
  EXPECT_EQ(history.wanted.at("hpc"), 3U);
  ASSERT_EQ(history.nodes.size(), 1U);
  EXPECT_EQ(history.nodes[0].id, "17");
  EXPECT_THAT(history.contributed, ElementsAre(Pair("", 10.5), Pair("hpc", 4.5)));
  ASSERT_TRUE(history.first_forecast);
  EXPECT_EQ(history.first_forecast->seconds, 7200.0);
  EXPECT_EQ(history.first_forecast->cost, 1.25);
}

// Nobody waits for members that cannot come back.
TEST_F(PoolJournalTest, RunThatIsResumedStopsNodesThatHadMembers) {
  PoolHistory history;
  std::vector<PoolNodeState> all;
  for (int i = 0; i <= static_cast<int>(PoolNodeState::kGone); ++i) {
    all.push_back(static_cast<PoolNodeState>(i));
    history.nodes.push_back({.name = fmt::format("hpc.{}", i), .pool = "hpc", .state = all.back()});
  }
  const auto states = [&](bool returns) {
    std::vector<PoolNodeState> found;
    for (const auto& node : nodes_to_adopt(history, returns)) found.push_back(node.state);
    return found;
  };
  EXPECT_EQ(states(true), all);
  using enum PoolNodeState;
  EXPECT_THAT(states(false), ElementsAre(kAsked, kQueued, kStarting, kStopping, kStopping,
                                         kStopping, kStopping, kGone));
}

TEST_F(PoolJournalTest, NodeOfWhichToolsHaveSaidMuchIsReadAgain) {
  const std::string text(100'000, 'x');
  ASSERT_TRUE(open().add({.name = "hpc.0", .pool = "hpc", .where = text, .cause = text}).ok());
  const PoolHistory history = open().history();
  ASSERT_EQ(history.nodes.size(), 1U);
  EXPECT_GT(history.nodes[0].cause.size(), 1000U);
  EXPECT_EQ(nodes_left(history).size(), 1U);
}

// Lines as a head has left them an age ago.
TEST_F(PoolJournalTest, NodesThatWereNotGoneWerePaidEverSince) {
  std::ofstream(path_) << R"({"kind":"run","run":"0a"})"
                       << "\n"
                       << R"({"kind":"node","name":"a.0","pool":"a","state":"running",)"
                       << R"("time":"2020-01-01T00:00:00.000Z","paid_seconds":60,)"
                       << R"("cost":1,"price_per_node_hour":2})"
                       << "\n"
                       << R"({"kind":"node","name":"a.1","pool":"a","state":"ended",)"
                       << R"("time":"2020-01-01T00:00:00.000Z","paid_seconds":60})"
                       << "\n"
                       << R"({"kind":"node","name":"a.2","pool":"a","state":"queued",)"
                       << R"("time":"2020-01-01T00:00:00.000Z","paid_seconds":0})"
                       << "\n";
  const PoolHistory history = open().history();
  ASSERT_EQ(history.nodes.size(), 3U);
  EXPECT_GT(history.nodes[0].paid.seconds, 60.0 + 365 * 86400.0);
  EXPECT_GT(history.nodes[0].paid.cost, 1.0 + 365 * 24 * 2.0);
  EXPECT_EQ(history.nodes[1].paid.seconds, 60.0);
  EXPECT_EQ(history.nodes[2].paid.seconds, 0.0);
}

// A minute to start, an hour of training, and a loss; one that is still on its way; and one that
// was refused.
TEST_F(PoolJournalTest, TellsHowLongNodesTookToStartAndHowOftenTheyWereLost) {
  std::ofstream file(path_);
  const auto write = [&](const char* node, const char* state, const char* time, const char* cause,
                         double paid = 0.0) {
    file << fmt::format(
        R"({{"kind":"node","name":"{}","pool":"a","state":"{}","id":"","where":"","cause":"{}",)"
        R"("time":"2020-01-01T{}.000Z","paid_seconds":{}}})"
        "\n",
        node, state, cause, time, paid);
  };
  write("a.0", "asked", "10:00:00", "");
  write("a.0", "starting", "10:00:10", "");
  write("a.1", "asked", "10:00:30", "");
  write("a.0", "running", "10:01:00", "");
  write("a.2", "asked", "10:01:00", "");
  write("a.2", "ended", "10:31:00", "no quota");
  write("a.0", "ended", "11:01:00", "it is gone", 3660.0);
  file << "no line at all\n";
  file.close();
  const actors::PoolAccount account = read_pool_accounts(path_).at("a");
  EXPECT_EQ(account.started, 1);
  EXPECT_EQ(account.start_seconds, 60.0);
  EXPECT_EQ(account.losses, 1);
  EXPECT_EQ(account.paid.seconds, 3660.0 + 3630.0);
  EXPECT_TRUE(read_pool_accounts(folder_ / "nowhere").empty());
}

}  // namespace
}  // namespace troupe::launch
