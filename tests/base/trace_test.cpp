#include "runtime/base/trace.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace troupe::runtime {
namespace {

TEST(TraceRing, KeepsTheLatestRecordsOldestFirst) {
  TraceRing ring(8);
  const std::uint32_t name = ring.name("step");
  for (int i = 0; i < 20; ++i) ring.write({name, TimePoint(i), TimePoint(i + 1), i});
  const TraceSnapshot snapshot = ring.snapshot();
  EXPECT_EQ(snapshot.written, 20u);
  ASSERT_EQ(snapshot.records.size(), 7u);
  EXPECT_EQ(snapshot.records.front().argument, 13);
  EXPECT_EQ(snapshot.records.back().argument, 19);
  EXPECT_EQ(snapshot.records.back().end, TimePoint(20));
  EXPECT_EQ(snapshot.names[snapshot.records.back().name], "step");
}

TEST(TraceRing, SameNameIsTheSameIndex) {
  TraceRing ring(8);
  const std::uint32_t load = ring.name("load");
  EXPECT_NE(load, ring.name("compute"));
  EXPECT_EQ(load, ring.name("load"));
}

TEST(TraceRing, RingOfNoneKeepsNothing) {
  TraceRing ring(0);
  EXPECT_FALSE(ring.enabled());
  ring.write({ring.name("step"), TimePoint(0), TimePoint(1), 1});
  EXPECT_TRUE(ring.snapshot().records.empty());
}

TEST(TraceRing, ReaderSeesOnlyWholeRecordsWhileTheOwnerWrites) {
  TraceRing ring(16);
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (int i = 0; i < 200000; ++i) {
      ring.write({static_cast<std::uint32_t>(i), TimePoint(i), TimePoint(i), i});
    }
    over = true;
  });
  while (!over) {
    std::int64_t last = -1;
    for (const TraceRecord& record : ring.snapshot().records) {
      ASSERT_EQ(record.start.count(), record.argument);
      ASSERT_EQ(record.end.count(), record.argument);
      ASSERT_EQ(record.name, static_cast<std::uint32_t>(record.argument));
      ASSERT_TRUE(last < 0 || record.argument == last + 1);
      last = record.argument;
    }
  }
  writer.join();
  EXPECT_EQ(ring.snapshot().records.size(), 15u);
}

}  // namespace
}  // namespace troupe::runtime
