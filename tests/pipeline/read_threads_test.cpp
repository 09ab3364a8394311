#include "pipeline/data/read_threads.h"

#include <gtest/gtest.h>

namespace troupe::pipeline {
namespace {

// Reading that takes one thread `work` seconds for what is computed in one second.
int settled(double work, int most, int rounds = 50) {
  ReadThreads reading(most);
  for (int i = 0; i < rounds; ++i) {
    const double seconds = work / reading.threads();
    reading.note(seconds, seconds < 1.0 ? 1.0 - seconds : 0.0);
  }
  return reading.threads();
}

TEST(ReadThreads, AreAsManyAsReadingNeedsToStayAhead) {
  EXPECT_EQ(settled(0.1, 8), 1);
  EXPECT_EQ(settled(0.85, 8), 1);
  EXPECT_EQ(settled(1.5, 8), 2);
  EXPECT_EQ(settled(3.3, 8), 4);
  EXPECT_EQ(settled(100.0, 8), 8);
  EXPECT_EQ(settled(100.0, 1), 1);
}

TEST(ReadThreads, GoBackWhenReadingBecomesEasierAndThenStay) {
  ReadThreads reading(8);
  for (int i = 0; i < 20; ++i) reading.note(1.0, 0.0);
  ASSERT_EQ(reading.threads(), 8);
  for (int i = 0; i < 20; ++i) reading.note(0.6 / reading.threads(), 1.0 - 0.6 / reading.threads());
  EXPECT_EQ(reading.threads(), 1);
  for (double work = 0.05; work < 12; work += 0.05) {
    ReadThreads any(16);
    int changes = 0;
    for (int i = 0; i < 100; ++i) {
      const double seconds = work / any.threads();
      changes += any.note(seconds, seconds < 1.0 ? 1.0 - seconds : 0.0) && i >= 20 ? 1 : 0;
    }
    EXPECT_EQ(changes, 0) << work;
  }
}

TEST(ReadThreads, ShortMomentsDecideNothing) {
  ReadThreads reading(4);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(reading.note(0.1, 0.0));
  EXPECT_TRUE(reading.note(0.11, 0.0));
  EXPECT_FALSE(reading.note(0.4, 0.0));
}

}  // namespace
}  // namespace troupe::pipeline
