#include "actors/work_book.h"

#include <gtest/gtest.h>

#include "actors/cost_book.h"
#include "actors/treasurer.h"

namespace troupe::actors {
namespace {

using std::chrono::seconds;

ViewPointer view_of(std::vector<std::uint32_t> members, std::uint64_t first_step) {
  auto view = std::make_shared<pipeline::View>();
  view->ring = members;
  view->first_step = first_step;
  for (std::uint32_t i = 0; i < 8; ++i) view->owners.push_back(members[i * members.size() / 8]);
  return view;
}

// Member 0 is of no pool, and all others are of one.
std::string pool_of(std::uint32_t member) { return member == 0 ? "" : "hpc"; }

TEST(WorkBook, SharesIterationsOutByMicroBatches) {
  WorkBookOptions options;
  options.steps_per_iteration = 4;
  options.iterations = 100;
  options.first_iteration = 10;
  WorkBook book(options);
  book.enter(view_of({0}, 40), pool_of);
  book.enter(view_of({0, 1, 2, 3}, 40 + 4 * 20), pool_of);
  book.reach(50);
  EXPECT_DOUBLE_EQ(book.contributed(""), 20 + 5);
  EXPECT_DOUBLE_EQ(book.contributed("hpc"), 15);
  EXPECT_DOUBLE_EQ(book.iterations_left(), 50);
}

TEST(WorkBook, KnowsThePaceOfEachPoolAndOfIterations) {
  WorkBook book{WorkBookOptions()};
  book.enter(view_of({0, 1, 2}, 0), pool_of);
  EXPECT_FALSE(book.iteration_seconds());
  book.note({0, 10, 40, 20.0}, seconds(30));
  book.note({1, 10, 20, 20.0}, seconds(31));
  book.note({2, 10, 20, 5.0}, seconds(31));
  EXPECT_FALSE(book.iteration_seconds()) << "one replica has to tell twice";
  book.note({0, 20, 40, 20.0}, seconds(50));
  EXPECT_DOUBLE_EQ(*book.iteration_seconds(), 2.0);
  EXPECT_EQ(book.crew("").workers, 1U);
  EXPECT_DOUBLE_EQ(book.crew("").speed, 2.0);
  EXPECT_EQ(book.crew("hpc").workers, 2U);
  EXPECT_DOUBLE_EQ(book.crew("hpc").speed, 2.5);
  // The pool's nodes are gone, and their speed is remembered.
  book.enter(view_of({0}, 30), pool_of);
  EXPECT_EQ(book.crew("hpc").workers, 0U);
  EXPECT_DOUBLE_EQ(book.crew("hpc").speed, 2.5);
  EXPECT_FALSE(book.iteration_seconds()) << "iterations of another View";
}

TEST(CostBook, CountsWhatNodesCostFromAskingForThemToTheirEnd) {
  CostBook book;
  PoolNode node{.name = "hpc.0", .pool = "hpc"};
  const auto become = [&](PoolNodeState state, int second) {
    node.state = state;
    return book.note(node, seconds(second)).seconds;
  };
  become(PoolNodeState::kAsked, 0);
  EXPECT_EQ(become(PoolNodeState::kQueued, 10), 0.0) << "it had no machine";
  EXPECT_EQ(book.account("hpc", seconds(100)).costing, 0U);
  EXPECT_EQ(become(PoolNodeState::kStarting, 110), 0.0);
  EXPECT_EQ(become(PoolNodeState::kRunning, 130), 20.0);
  const PoolAccount running = book.account("hpc", seconds(140));
  EXPECT_EQ(running.paid.seconds, 30.0);
  EXPECT_EQ(running.running, 1U);
  EXPECT_EQ(running.started, 1U);
  EXPECT_EQ(running.start_seconds, 130.0);
  node.cause = "its members are gone";
  EXPECT_EQ(book.account("hpc", seconds(149)).costing, 1U);
  EXPECT_EQ(become(PoolNodeState::kStopping, 150), 40.0);
  EXPECT_EQ(book.account("hpc", seconds(155)).costing, 0U);
  config::PoolSection pool;
  pool.stops_in = seconds(60);
  const auto leaving_seconds = [&](int second) {
    return offer_of(pool, book.account("hpc", seconds(second)), 1.0, 1.0, 1).leaving_seconds;
  };
  EXPECT_EQ(leaving_seconds(155), 55.0);
  EXPECT_EQ(leaving_seconds(500), 0.0) << "it had 60 s";
  EXPECT_EQ(become(PoolNodeState::kGone, 160), 50.0);
  const PoolAccount gone = book.account("hpc", seconds(1000));
  EXPECT_EQ(gone.paid.seconds, 50.0);
  EXPECT_EQ(gone.costing, 0U);
  EXPECT_EQ(gone.losses, 1U);
}

TEST(CostBook, GoesOnFromWhatAnEarlierHeadHasPaid) {
  CostBook book;
  book.note({.name = "hpc.0", .pool = "hpc", .state = PoolNodeState::kGone, .paid = {7.0, 0.5}},
            seconds(0));
  book.note({.name = "hpc.1", .pool = "hpc", .state = PoolNodeState::kRunning, .paid = {5.0, 0.25}},
            seconds(0));
  const PoolAccount account = book.account("hpc", seconds(10));
  EXPECT_EQ(account.paid.seconds, 22.0);
  EXPECT_EQ(account.paid.cost, 0.75) << "no price is known";
}

TEST(CostBook, CountsEachHourAtThePriceThatItHad) {
  CostBook book;
  book.set_price("hpc", 2.0, seconds(0));
  book.note({.name = "hpc.0", .pool = "hpc", .state = PoolNodeState::kRunning}, seconds(0));
  book.note({.name = "own.0", .pool = "own", .state = PoolNodeState::kRunning}, seconds(0));
  book.set_price("hpc", 6.0, seconds(3600));
  EXPECT_DOUBLE_EQ(book.account("hpc", seconds(5400)).paid.cost, 2.0 + 3.0);
  EXPECT_EQ(book.account("hpc", seconds(5400)).price, 6.0);
  const Payment paid =
      book.note({.name = "hpc.0", .pool = "hpc", .state = PoolNodeState::kGone}, seconds(7200));
  EXPECT_DOUBLE_EQ(paid.cost, 2.0 + 6.0);
  EXPECT_DOUBLE_EQ(paid.seconds, 7200.0);
  book.set_price("hpc", 100.0, seconds(7200));
  EXPECT_DOUBLE_EQ(book.account("hpc", seconds(9000)).paid.cost, 8.0);
  EXPECT_EQ(book.account("own", seconds(9000)).paid.cost, 0.0);
}

}  // namespace
}  // namespace troupe::actors
