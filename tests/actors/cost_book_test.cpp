#include "actors/cost_book.h"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using runtime::TimePoint;
using State = PoolNodeState;

class CostBookTest : public testing::Test {
 protected:
  CostBookTest() { book_.set_price("hpc", 3600.0, TimePoint{0}); }
  static TimePoint at(int second) { return TimePoint(std::chrono::seconds(second)); }
  Payment note(State state, int second, bool was_there = true) {
    PoolNode node{.name = "hpc.0", .pool = "hpc", .state = state};
    node.was_there = was_there;
    return book_.note(node, at(second));
  }
  double spent(int second) const { return book_.account("hpc", at(second)).paid.cost; }

  CostBook book_;
};

TEST_F(CostBookTest, NodeCostsFromTheMomentItIsAskedForAndNotWhileItIsQueued) {
  note(State::kAsked, 0);
  EXPECT_DOUBLE_EQ(spent(10), 10.0);
  note(State::kQueued, 10);
  EXPECT_DOUBLE_EQ(spent(100), 0.0) << "it had no machine before";
  note(State::kStarting, 100);
  EXPECT_DOUBLE_EQ(note(State::kGone, 160).cost, 60.0);
  EXPECT_DOUBLE_EQ(spent(1000), 60.0);
}

TEST_F(CostBookTest, PriceThatChangesIsNotThatOfTheTimeBefore) {
  note(State::kStarting, 0);
  book_.set_price("hpc", 7200.0, at(10));
  EXPECT_DOUBLE_EQ(spent(20), 10.0 + 20.0);
}

TEST_F(CostBookTest, NodeThatWasNeverThereHasCostNothing) {
  note(State::kAsked, 0);
  note(State::kStopping, 5);
  EXPECT_DOUBLE_EQ(spent(60), 60.0) << "it may be there";
  EXPECT_DOUBLE_EQ(note(State::kGone, 65, false).cost, 0.0);
  EXPECT_DOUBLE_EQ(spent(100), 0.0);
}

}  // namespace
}  // namespace troupe::actors
