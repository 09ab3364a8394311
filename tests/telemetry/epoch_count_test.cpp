#include "telemetry/epoch_count.h"

#include <gtest/gtest.h>

namespace troupe::telemetry {
namespace {

// Eleven iterations an epoch.
std::string text(std::uint64_t done, std::uint64_t all) {
  return epoch_text(count_epochs(done, all, 11));
}

TEST(EpochCount, NamesTheEpochThatIsBeingTrained) {
  EXPECT_EQ(text(0, 22), "epoch 1/2");
  EXPECT_EQ(text(10, 22), "epoch 1/2");
  EXPECT_EQ(text(11, 22), "epoch 2/2");
}

TEST(EpochCount, NamesTheLastOneOfARunThatHasEnded) {
  EXPECT_EQ(text(22, 22), "epoch 2/2");
  EXPECT_EQ(text(4, 4), "epoch 1/1");
  EXPECT_EQ(text(12, 12), "epoch 2/2");
}

TEST(EpochCount, SaysWhatIsKnown) {
  EXPECT_EQ(text(12, 0), "epoch 2");
  EXPECT_EQ(count_epochs(5, 10, 0).epoch, 0);
}

}  // namespace
}  // namespace troupe::telemetry
