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

TEST(TraceRing, KeepsWhatWasSentAndWhatWasHandledApart) {
  TraceRing ring(8);
  const std::uint32_t name = ring.name("batch");
  ring.write_sent({7, 1}, TimePoint(5), 640);
  ring.write({name, TimePoint(6), TimePoint(9), 128, {TraceFlow::kWithinNode | 3, UINT64_MAX}});
  const TraceSnapshot snapshot = ring.snapshot();
  ASSERT_EQ(snapshot.records.size(), 2u);
  const TraceRecord& sent = snapshot.records[0];
  EXPECT_TRUE(sent.sent);
  EXPECT_EQ(sent.flow, (TraceFlow{7, 1}));
  EXPECT_EQ(sent.start, TimePoint(5));
  EXPECT_EQ(sent.argument, 640);
  const TraceRecord& handled = snapshot.records[1];
  EXPECT_FALSE(handled.sent);
  EXPECT_EQ(snapshot.names[handled.name], "batch");
  EXPECT_EQ(handled.flow, (TraceFlow{TraceFlow::kWithinNode | 3, UINT64_MAX}));
  EXPECT_TRUE(handled.flow.within_node());
  EXPECT_EQ(handled.end, TimePoint(9));
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
      const auto number = static_cast<std::uint32_t>(i);
      ring.write({number, TimePoint(i), TimePoint(i), i, {number, number}});
    }
    over = true;
  });
  while (!over) {
    std::int64_t last = -1;
    for (const TraceRecord& record : ring.snapshot().records) {
      ASSERT_EQ(record.start.count(), record.argument);
      ASSERT_EQ(record.end.count(), record.argument);
      ASSERT_EQ(record.name, static_cast<std::uint32_t>(record.argument));
      ASSERT_EQ(record.flow.link, record.name);
      ASSERT_EQ(record.flow.number, record.name);
      ASSERT_TRUE(last < 0 || record.argument == last + 1);
      last = record.argument;
    }
  }
  writer.join();
  EXPECT_EQ(ring.snapshot().records.size(), 15u);
}

}  // namespace
}  // namespace troupe::runtime
