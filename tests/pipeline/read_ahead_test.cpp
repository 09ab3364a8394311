#include "pipeline/data/read_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::pipeline {
namespace {

// A replica takes one micro-batch a moment. Every so many micro-batches reading pauses for so many
// moments; others are read at once. Returns how far ahead is read in the end, and counts the
// moments of the second half in which the replica found nothing.
std::int64_t settled(int every, int pause, int* waited = nullptr,
                     std::int64_t most = ReadAhead::kMost) {
  ReadAhead ahead(most);
  std::int64_t ready = 0, read = 0;
  int busy = 0;
  for (int moment = 0; moment < 20000; ++moment) {
    const std::int64_t before = ready;
    if (ready > 0) {
      --ready;
    } else if (waited != nullptr && moment >= 10000) {
      ++*waited;
    }
    if (busy > 0) {
      if (before > 0 && ready == 0) ahead.note_used_up();
      if (--busy > 0) continue;
      ++ready;
    }
    while (busy == 0) {
      if (ready >= ahead.micro_batches()) {
        ahead.note_full();
        break;
      }
      if (++read % every == 0) {
        busy = pause;
      } else {
        ++ready;
      }
    }
  }
  return ahead.micro_batches();
}

TEST(ReadAhead, BridgesThePausesOfReading) {
  for (const int pause : {1, 3, 5, 7, 20, 50}) {
    int waited = 0;
    const std::int64_t far = settled(100, pause, &waited);
    EXPECT_EQ(waited, 0) << pause;
    EXPECT_GE(far, pause);
    EXPECT_LE(far, std::max<std::int64_t>(ReadAhead::kLeast, 2 * (pause + 1))) << pause;
  }
}

TEST(ReadAhead, StaysWhereReadingIsTooSlowAsAWhole) {
  EXPECT_EQ(settled(3, 6), ReadAhead::kLeast);
  EXPECT_EQ(settled(1, 2), ReadAhead::kLeast);
}

TEST(ReadAhead, HasBounds) {
  EXPECT_EQ(settled(1000, 500), ReadAhead::kMost);
  EXPECT_EQ(settled(1000, 500, nullptr, 40), 40);
  EXPECT_EQ(settled(1000, 500, nullptr, ReadAhead::kLeast), ReadAhead::kLeast);
  EXPECT_EQ(ReadAhead::most(1), 64);
  EXPECT_EQ(ReadAhead::most(1 << 20), 32);
  EXPECT_EQ(ReadAhead::most(100 << 20), 4);
}

}  // namespace
}  // namespace troupe::pipeline
