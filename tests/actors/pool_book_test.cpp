// What a run's book of nodes decides: whom it asks for, stops, lets go and gives up.

#include "actors/pool_book.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace troupe::actors {
namespace {

using runtime::TimePoint;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

const runtime::Error kNoAnswer{runtime::ErrorKind::kLostPeers, "no answer in time"};

class PoolBookTest : public testing::Test {
 protected:
  // What is to be done at that second, as words.
  std::vector<std::string> orders(int second) {
    std::vector<std::string> words;
    for (const PoolOrder& order : book_.next(at(second))) {
      if (const auto* asked = std::get_if<AskForNode>(&order))
        words.push_back("ask " + asked->node);
      if (const auto* stop = std::get_if<StopNode>(&order)) {
        words.push_back("stop " + stop->node + (stop->id.empty() ? "" : " " + stop->id));
      }
      if (const auto* go = std::get_if<LetMembersGo>(&order)) {
        for (const std::string& member : go->members) words.push_back("let go " + member);
      }
    }
    return words;
  }
  // The same, as often as there is something to do.
  std::vector<std::string> all_orders(int second) {
    std::vector<std::string> all;
    for (auto some = orders(second); !some.empty(); some = orders(second)) {
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }
  std::string state(const std::string& node) const {
    for (const PoolNode& each : book_.nodes()) {
      if (each.name == node) return word_of(each.state);
    }
    return "unknown";
  }
  static TimePoint at(int second) { return TimePoint(seconds(second)); }
  // hpc.0 runs with member.1, hpc.1 with member.2.
  void make_two_run() {
    ASSERT_TRUE(book_.want("hpc", 2).ok());
    all_orders(0);
    for (const char* number : {"0", "1"}) {
      const std::string node = std::string("hpc.") + number;
      book_.started(node, std::string("job") + number, at(0));
      list_.push_back({node, std::string("job") + number});
    }
    book_.listed("hpc", list_, at(1));
    for (const auto& [node, member] : {std::pair("hpc.0", "member.1"), {"hpc.1", "member.2"}}) {
      book_.member_came(node, member, at(2));
      book_.member_trains(member, at(3));
    }
  }

  PoolBook book_{{{"hpc", 0, 4, seconds(100)}}};
  std::vector<ListedNode> list_;
};

TEST_F(PoolBookTest, NodeGoesThroughItsStates) {
  EXPECT_THAT(orders(0), IsEmpty());
  ASSERT_TRUE(book_.want("hpc", 1).ok());
  EXPECT_THAT(orders(0), ElementsAre("ask hpc.0"));
  EXPECT_EQ(state("hpc.0"), "asked");
  book_.started("hpc.0", "17", at(1));
  book_.listed("hpc", {{"hpc.0", "17", true}}, at(2));
  EXPECT_EQ(state("hpc.0"), "queued");
  book_.listed("hpc", {{"hpc.0", "17", false, "node1"}}, at(500));
  EXPECT_EQ(state("hpc.0"), "starting");
  EXPECT_EQ(book_.nodes()[0].where, "node1");
  book_.member_came("hpc.0", "member.4", at(510));
  EXPECT_EQ(state("hpc.0"), "learning");
  book_.member_trains("member.4", at(511));
  EXPECT_EQ(state("hpc.0"), "running");
  EXPECT_THAT(orders(5000), IsEmpty());
}

TEST_F(PoolBookTest, TimeToJoinBeginsWhenTheMachineIsUp) {
  ASSERT_TRUE(book_.want("hpc", 1).ok());
  orders(0);
  book_.started("hpc.0", "17", at(0));
  for (const int second : {1, 90, 180, 270}) {
    book_.listed("hpc", {{"hpc.0", "17", false, "node1", true}}, at(second));
    EXPECT_EQ(state("hpc.0"), "starting");
    EXPECT_THAT(orders(second), IsEmpty()) << second;
  }
  book_.listed("hpc", {{"hpc.0", "17", false, "node1"}}, at(280));
  EXPECT_THAT(orders(369), IsEmpty());
  EXPECT_THAT(orders(370), ElementsAre("stop hpc.0 17"));
}

TEST_F(PoolBookTest, FewerNodesAreAskedForThanThePoolHas) {
  EXPECT_FALSE(book_.want("hpc", 5).ok());
  EXPECT_THAT(book_.want("cloud", 1).error().message, testing::HasSubstr("its pools are hpc"));
  ASSERT_TRUE(book_.want("hpc", 4).ok());
  EXPECT_EQ(all_orders(0).size(), 4U);
  EXPECT_THAT(orders(1), IsEmpty());
}

TEST_F(PoolBookTest, OneNodeIsAskedForAtATimeAndPoolsTakeTurns) {
  PoolBook book({{"campus", 2, 4}, {"hpc", 3, 4}});
  std::vector<std::string> asked;
  for (auto some = book.next(at(0)); !some.empty(); some = book.next(at(0))) {
    ASSERT_EQ(some.size(), 1U);
    asked.push_back(std::get<AskForNode>(some[0]).node);
  }
  EXPECT_THAT(asked, ElementsAre("campus.0", "hpc.0", "campus.1", "hpc.1", "hpc.2"));
}

TEST_F(PoolBookTest, NodesAreStoppedBeforeOthersAreAskedFor) {
  make_two_run();
  book_.listed("hpc", {list_[0], list_[1], {"hpc.0", "job2"}}, at(4));
  ASSERT_TRUE(book_.want("hpc", 3).ok());
  EXPECT_THAT(orders(5), ElementsAre("stop hpc.0 job2"));
  EXPECT_THAT(orders(5), ElementsAre("ask hpc.2"));
}

TEST_F(PoolBookTest, ClosedBookAsksForNoNodeAndKeepsThoseThatAreThere) {
  make_two_run();
  ASSERT_TRUE(book_.want("hpc", 4).ok());
  EXPECT_THAT(orders(4), ElementsAre("ask hpc.2"));
  book_.close();
  EXPECT_THAT(all_orders(5), IsEmpty());
  EXPECT_EQ(state("hpc.0"), "running");
}

TEST_F(PoolBookTest, IdThatIsKnownBeforehandIsThatOfANodeWhoseStartFailed) {
  ASSERT_TRUE(book_.want("hpc", 1).ok());
  orders(0);
  book_.set_id("hpc.0", "node-a");
  book_.start_failed("hpc.0", kNoAnswer, at(0));
  EXPECT_THAT(orders(0), ElementsAre("stop hpc.0 node-a"));
  ASSERT_THAT(orders(5), ElementsAre("ask hpc.1"));
  book_.set_id("hpc.1", "node-b");
  book_.start_failed("hpc.1", {runtime::ErrorKind::kUsage, "refused"}, at(5));
  EXPECT_EQ(book_.nodes()[1].id, "") << "nothing is there";
}

TEST_F(PoolBookTest, ThoseThatHaveNotJoinedAreGivenBackFirstAndThenThoseThatCameLast) {
  make_two_run();
  ASSERT_TRUE(book_.want("hpc", 3).ok());
  EXPECT_THAT(orders(4), ElementsAre("ask hpc.2"));
  book_.started("hpc.2", "job2", at(4));
  ASSERT_TRUE(book_.want("hpc", 1).ok());
  EXPECT_THAT(orders(5), ElementsAre("let go member.2", "stop hpc.2 job2"));
  EXPECT_EQ(state("hpc.1"), "draining");
  EXPECT_EQ(state("hpc.2"), "stopping");
  // It is stopped when its members are gone and it is not.
  book_.member_gone("member.2", at(6));
  EXPECT_THAT(orders(7), IsEmpty());
  EXPECT_THAT(orders(16), ElementsAre("stop hpc.1 job1"));
  list_ = {{"hpc.0", "job0"}};
  book_.listed("hpc", list_, at(40));
  EXPECT_EQ(state("hpc.1"), "ended");
  EXPECT_EQ(state("hpc.2"), "ended");
  EXPECT_EQ(state("hpc.0"), "running");
  EXPECT_THAT(orders(41), IsEmpty()) << "nobody is asked for in their place";
}

TEST_F(PoolBookTest, NodeThatIsTakenAwayIsReplacedAtOnce) {
  make_two_run();
  list_.pop_back();
  book_.member_gone("member.2", at(10));
  book_.listed("hpc", list_, at(11));
  EXPECT_EQ(state("hpc.1"), "ended");
  EXPECT_THAT(orders(11), ElementsAre("ask hpc.2"));
}

TEST_F(PoolBookTest, NodeThatCameAndLeftBeforeItWasListedIsGone) {
  ASSERT_TRUE(book_.want("hpc", 1).ok());
  orders(0);
  book_.started("hpc.0", "17", at(0));
  book_.member_came("hpc.0", "member.1", at(0));
  book_.end(at(1));
  book_.listed("hpc", {}, at(2));
  EXPECT_TRUE(book_.all_gone());
}

TEST_F(PoolBookTest, NodeThatWasThoughtGoneIsTakenBack) {
  ASSERT_TRUE(book_.want("hpc", 1).ok());
  orders(0);
  book_.start_failed("hpc.0", kNoAnswer, at(0));
  orders(0);
  book_.listed("hpc", {}, at(50));
  EXPECT_EQ(state("hpc.0"), "stopping") << "a cloud may show it late";
  book_.listed("hpc", {}, at(60));
  EXPECT_EQ(state("hpc.0"), "ended");
  EXPECT_FALSE(book_.nodes()[0].was_there);
  book_.member_came("hpc.0", "member.1", at(62));
  EXPECT_EQ(state("hpc.0"), "learning");
  EXPECT_TRUE(book_.nodes()[0].was_there);
  EXPECT_THAT(orders(62), IsEmpty()) << "it is the one that is wanted";
}

TEST_F(PoolBookTest, JobThatIsQueuedAgainIsWaitedFor) {
  make_two_run();
  book_.member_gone("member.2", at(10));
  book_.listed("hpc", {{"hpc.0", "job0"}, {"hpc.1", "job1", true}}, at(11));
  EXPECT_EQ(state("hpc.1"), "queued");
  EXPECT_THAT(orders(400), IsEmpty());
  book_.listed("hpc", {{"hpc.0", "job0"}, {"hpc.1", "job1"}}, at(401));
  EXPECT_THAT(orders(401), IsEmpty()) << "it has not joined yet";
  book_.member_came("hpc.1", "member.5", at(402));
  EXPECT_EQ(state("hpc.1"), "learning");
}

TEST_F(PoolBookTest, NodeThatDoesNotJoinIsStoppedAndAskedForAgainAfterAPause) {
  ASSERT_TRUE(book_.want("hpc", 1).ok());
  orders(0);
  book_.started("hpc.0", "17", at(0));
  book_.listed("hpc", {{"hpc.0", "17"}}, at(1));
  EXPECT_THAT(orders(100), IsEmpty());
  EXPECT_THAT(orders(101), ElementsAre("stop hpc.0 17"));
  EXPECT_THAT(orders(105), IsEmpty());
  EXPECT_THAT(orders(106), ElementsAre("ask hpc.1"));
  // Nobody has seen that the first one ended.
  EXPECT_THAT(orders(131), ElementsAre("stop hpc.0 17"));
  book_.listed("hpc", {}, at(132));
  EXPECT_EQ(state("hpc.0"), "ended");
}

TEST_F(PoolBookTest, PausesDoubleWhileNothingStarts) {
  PoolBook book({{"hpc", 2, 100, seconds(100)}});
  std::vector<int> asked;
  for (int second = 0; second < 1000; ++second) {
    for (const PoolOrder& order : book.next(at(second))) {
      const auto* ask = std::get_if<AskForNode>(&order);
      if (ask == nullptr) continue;
      asked.push_back(second);
      book.start_failed(ask->node, {runtime::ErrorKind::kUsage, "no quota"}, at(second));
    }
    book.listed("hpc", {}, at(second));
  }
  EXPECT_THAT(asked, ElementsAre(0, 5, 15, 35, 75, 155, 315, 635, 955));
}

TEST_F(PoolBookTest, NodeWhoseStartSeemedToFailIsStoppedWhereItWasStartedAllTheSame) {
  ASSERT_TRUE(book_.want("hpc", 1).ok());
  orders(0);
  book_.start_failed("hpc.0", kNoAnswer, at(30));
  EXPECT_THAT(orders(30), ElementsAre("stop hpc.0"));
  book_.listed("hpc", {{"hpc.0", "17"}}, at(31));
  EXPECT_EQ(state("hpc.0"), "stopping");
  EXPECT_THAT(orders(60), testing::Contains("stop hpc.0 17"));
  book_.listed("hpc", {}, at(61));
  EXPECT_EQ(state("hpc.0"), "ended");
  EXPECT_TRUE(book_.nodes()[0].was_there) << "it has cost something";
}

// Its head is lost meanwhile. One that was seen is gone sooner, and has cost something.
TEST_F(PoolBookTest, NextHeadWaitsForANodeWhoseStartSeemedToFail) {
  PoolBook next({{"hpc", 0, 4, seconds(100)}});
  next.adopt({.name = "hpc.3",
              .pool = "hpc",
              .state = PoolNodeState::kStopping,
              .cause = "no answer within 30 s"},
             at(0));
  next.adopt({.name = "hpc.4",
              .pool = "hpc",
              .state = PoolNodeState::kStopping,
              .where = "vm-4",
              .cause = "its members are gone"},
             at(0));
  next.listed("hpc", {}, at(1));
  EXPECT_EQ(next.nodes()[1].state, PoolNodeState::kGone) << "it was there";
  next.listed("hpc", {}, at(30));
  EXPECT_EQ(next.nodes()[0].state, PoolNodeState::kStopping);
  EXPECT_TRUE(next.nodes()[1].was_there);
  next.listed("hpc", {}, at(60));
  EXPECT_EQ(next.nodes()[0].state, PoolNodeState::kGone);
  EXPECT_FALSE(next.nodes()[0].was_there);
}

TEST_F(PoolBookTest, SecondJobOfTheSameNameIsStopped) {
  ASSERT_TRUE(book_.want("hpc", 1).ok());
  orders(0);
  book_.started("hpc.0", "17", at(0));
  book_.listed("hpc", {{"hpc.0", "17"}, {"hpc.0", "18"}, {"hpc.9", "19"}}, at(1));
  EXPECT_THAT(orders(1), ElementsAre("stop hpc.0 18", "stop hpc.9 19"));
  EXPECT_EQ(state("hpc.0"), "starting");
}

TEST_F(PoolBookTest, NextHeadKnowsWhatWasAskedForAndWaitsForItsMembers) {
  PoolBook next({{"hpc", 2, 4, seconds(100)}});
  next.adopt({"hpc.3", "hpc", PoolNodeState::kAsked}, at(0));
  next.adopt({"hpc.5", "hpc", PoolNodeState::kRunning, "job5"}, at(0));
  EXPECT_THAT(next.next(at(0)), IsEmpty());
  next.listed("hpc", {{"hpc.3", "job3"}, {"hpc.5", "job5"}}, at(1));
  next.member_came("hpc.5", "member.2", at(2));
  next.member_trains("member.2", at(2));
  EXPECT_THAT(next.next(at(60)), IsEmpty());
  EXPECT_EQ(next.nodes()[1].state, PoolNodeState::kRunning);
  ASSERT_TRUE(next.want("hpc", 3).ok());
  const auto orders = next.next(at(61));
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(std::get<AskForNode>(orders[0]).node, "hpc.6") << "no name is given twice";
}

TEST_F(PoolBookTest, NameOfANodeThatIsGoneIsNotGivenAgain) {
  PoolBook next({{"hpc", 1, 4, seconds(100)}});
  next.adopt({"hpc.7", "hpc", PoolNodeState::kGone}, at(0));
  EXPECT_EQ(std::get<AskForNode>(next.next(at(0)).at(0)).node, "hpc.8");
}

// Started twice, and the one that was kept is gone: the other is on its way out, and there.
TEST_F(PoolBookTest, SecondOfANameCountsUntilItIsGone) {
  PoolBook book({{"hpc", 1, 1, seconds(100)}});
  book.next(at(0));
  book.started("hpc.0", "job0", at(0));
  book.listed("hpc", {{"hpc.0", "job0"}, {"hpc.0", "job1"}}, at(1));
  book.next(at(1));
  book.listed("hpc", {{"hpc.0", "job1"}}, at(60));
  EXPECT_EQ(book.nodes()[0].state, PoolNodeState::kGone);
  for (const PoolOrder& order : book.next(at(1000))) {
    EXPECT_FALSE(std::holds_alternative<AskForNode>(order)) << "there would be two";
  }
  book.listed("hpc", {}, at(1001));
  EXPECT_TRUE(std::holds_alternative<AskForNode>(book.next(at(1002)).at(0)));
}

TEST_F(PoolBookTest, NodeThatWasDrainingWhenTheHeadDiedGoesOnToDrain) {
  PoolBook next({{"hpc", 0, 4, seconds(100)}});
  next.adopt({"hpc.0", "hpc", PoolNodeState::kDraining, "job0"}, at(0));
  EXPECT_THAT(next.next(at(0)), IsEmpty());
  next.member_came("hpc.0", "member.1", at(1));
  EXPECT_THAT(std::get<LetMembersGo>(next.next(at(1)).at(0)).members, ElementsAre("member.1"));
  EXPECT_THAT(next.next(at(2)), IsEmpty());
  // The head could not let it go yet; and a second worker comes.
  next.ask_member_again("member.1");
  next.member_came("hpc.0", "member.2", at(3));
  EXPECT_THAT(std::get<LetMembersGo>(next.next(at(3)).at(0)).members,
              ElementsAre("member.1", "member.2"));
}

TEST_F(PoolBookTest, NodeWhoseMembersMayComeBackIsNotStoppedBecauseFewerAreWanted) {
  PoolBook next({{"hpc", 0, 4, seconds(100)}});
  next.adopt({"hpc.0", "hpc", PoolNodeState::kRunning, "job0"}, at(0));
  EXPECT_THAT(next.next(at(1)), IsEmpty());
  next.member_came("hpc.0", "member.1", at(2));
  EXPECT_EQ(std::get<LetMembersGo>(next.next(at(2)).at(0)).node, "hpc.0");
}

TEST_F(PoolBookTest, NodesOnTheirWayOutCountToo) {
  ASSERT_TRUE(book_.want("hpc", 4).ok());
  EXPECT_EQ(all_orders(0).size(), 4U);
  for (int i = 0; i < 4; ++i) list_.push_back({"hpc." + std::to_string(i), "job"});
  book_.listed("hpc", list_, at(1));
  EXPECT_EQ(orders(101).size(), 4U) << "none has joined";
  EXPECT_THAT(orders(110), IsEmpty()) << "they may still cost money";
  book_.listed("hpc", {}, at(111));
  EXPECT_EQ(all_orders(111).size(), 4U);
}

TEST_F(PoolBookTest, RowsWithoutAnIdAreKnownByTheirNames) {
  ASSERT_TRUE(book_.want("hpc", 1).ok());
  orders(0);
  book_.started("hpc.0", "4711", at(0));
  book_.listed("hpc", {{"hpc.0", ""}}, at(1));
  EXPECT_THAT(orders(1), IsEmpty());
  EXPECT_EQ(book_.nodes()[0].id, "4711");
}

TEST_F(PoolBookTest, NodeWithMembersIsThereWhateverAListSays) {
  make_two_run();
  book_.listed("hpc", {{"hpc.0", "job0"}}, at(10));
  EXPECT_EQ(state("hpc.1"), "running");
}

TEST_F(PoolBookTest, NodeWhoseMembersDoNotComeBackIsStopped) {
  PoolBook next({{"hpc", 1, 4, seconds(100)}});
  next.adopt({"hpc.0", "hpc", PoolNodeState::kRunning, "job0"}, at(0));
  next.listed("hpc", {{"hpc.0", "job0"}}, at(1));
  EXPECT_THAT(next.next(at(69)), IsEmpty());
  EXPECT_EQ(std::get<StopNode>(next.next(at(70)).at(0)).node, "hpc.0");
}

TEST_F(PoolBookTest, MemberThatCannotLeaveKeepsItsNode) {
  make_two_run();
  ASSERT_TRUE(book_.want("hpc", 0).ok());
  EXPECT_THAT(orders(4), ElementsAre("let go member.1", "let go member.2"));
  book_.member_kept("member.1", at(5));
  EXPECT_EQ(state("hpc.0"), "running");
  EXPECT_EQ(*book_.wanted("hpc"), 1U);
  EXPECT_THAT(orders(6), IsEmpty());
}

TEST_F(PoolBookTest, EndStopsWhatDoesNotEndByItself) {
  make_two_run();
  ASSERT_TRUE(book_.want("hpc", 3).ok());
  orders(4);
  book_.started("hpc.2", "job2", at(4));
  book_.end(at(5));
  EXPECT_THAT(orders(5), ElementsAre("stop hpc.2 job2"));
  book_.listed("hpc", {{"hpc.1", "job1"}}, at(10));
  EXPECT_EQ(state("hpc.0"), "ended");
  EXPECT_THAT(orders(15), ElementsAre("stop hpc.1 job1"));
  EXPECT_FALSE(book_.all_gone());
  book_.listed("hpc", {}, at(40));
  EXPECT_TRUE(book_.all_gone());
}

// Its start may be told of late, by a thread that has waited for a tool.
TEST_F(PoolBookTest, MemberThatCameBeforeTheEndIsNotWaitedForAfterIt) {
  make_two_run();
  book_.end(at(5));
  book_.member_came("hpc.1", "member.2", at(6));
  book_.member_trains("member.2", at(6));
  book_.listed("hpc", {}, at(10));
  EXPECT_TRUE(book_.all_gone());
}

TEST_F(PoolBookTest, WithoutAListANodeIsGoneWhenItWasStopped) {
  PoolBook book({{.name = "own", .nodes = 1, .most = 2, .lists = false}});
  book.next(at(0));
  book.started("own.0", "vm", at(0));
  EXPECT_EQ(book.nodes()[0].state, PoolNodeState::kStarting);
  book.member_came("own.0", "member.1", at(1));
  book.member_gone("member.1", at(2));
  EXPECT_EQ(std::get<StopNode>(book.next(at(12)).at(0)).node, "own.0");
  book.stopped("own.0", at(12));
  EXPECT_EQ(book.nodes()[0].state, PoolNodeState::kGone);
}

}  // namespace
}  // namespace troupe::actors
