#include "launch/pools/pool_journal.h"

#include <gmock/gmock.h>

#include <fstream>

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

// Lines as a head has left them an age ago.
TEST_F(PoolJournalTest, NodesThatWereNotGoneWerePaidEverSince) {
  std::ofstream(path_) << R"({"kind":"run","run":"0a"})"
                       << "\n"
                       << R"({"kind":"node","name":"a.0","pool":"a","state":"running",)"
                       << R"("time":"2020-01-01T00:00:00.000Z","paid_seconds":60})"
                       << "\n"
                       << R"({"kind":"node","name":"a.1","pool":"a","state":"ended",)"
                       << R"("time":"2020-01-01T00:00:00.000Z","paid_seconds":60})"
                       << "\n"
                       << R"({"kind":"node","name":"a.2","pool":"a","state":"queued",)"
                       << R"("time":"2020-01-01T00:00:00.000Z","paid_seconds":0})"
                       << "\n";
  const PoolHistory history = open().history();
  ASSERT_EQ(history.nodes.size(), 3U);
  EXPECT_GT(history.nodes[0].paid_seconds, 60.0 + 365 * 86400.0);
  EXPECT_EQ(history.nodes[1].paid_seconds, 60.0);
  EXPECT_EQ(history.nodes[2].paid_seconds, 0.0);
}

}  // namespace
}  // namespace troupe::launch
