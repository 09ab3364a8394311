#include "telemetry/trace/trace_bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace troupe::telemetry {
namespace {

using runtime::ActorTrace;
using runtime::TimePoint;
using runtime::TraceFlow;
using runtime::TraceRecord;

std::vector<ActorTrace> example() {
  ActorTrace replica{"replica.0", {{"start", "batch", "compute"}, {}, 100}};
  replica.trace.records = {
      {.name = 1,
       .start = TimePoint(5'000'000'000'000),
       .end = TimePoint(5'000'000'900'000),
       .argument = 4096,
       .flow = {17, 1'000'000}},
      {.start = TimePoint(5'000'000'100'000),
       .end = TimePoint(5'000'000'100'000),
       .argument = 128,
       .flow = {TraceFlow::kWithinNode | 3, 1},
       .sent = true},
      // For a span that began before the one that stands before it.
      {.name = 2, .start = TimePoint(4'999'000'000'000), .end = TimePoint(5'000'000'200'000)},
      {.start = TimePoint(-7), .end = TimePoint(-7), .argument = INT64_MIN, .sent = true},
  };
  return {replica, {"reducer", {}}};
}

void expect_same(const TraceRecord& a, const TraceRecord& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.start, b.start);
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.argument, b.argument);
  EXPECT_EQ(a.flow, b.flow);
  EXPECT_EQ(a.sent, b.sent);
}

TEST(TraceBytes, ComeBackAsTheyWere) {
  const auto read = unpack_actors(pack_actors(example()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  const auto actors = example();
  ASSERT_EQ(read->size(), actors.size());
  for (std::size_t i = 0; i < actors.size(); ++i) {
    EXPECT_EQ((*read)[i].name, actors[i].name);
    EXPECT_EQ((*read)[i].trace.names, actors[i].trace.names);
    EXPECT_EQ((*read)[i].trace.written, actors[i].trace.written);
    ASSERT_EQ((*read)[i].trace.records.size(), actors[i].trace.records.size());
    for (std::size_t k = 0; k < actors[i].trace.records.size(); ++k) {
      expect_same((*read)[i].trace.records[k], actors[i].trace.records[k]);
    }
  }
}

TEST(TraceBytes, AreFewPerRecord) {
  ActorTrace actor{"reducer", {{"bucket"}, {}, 0}};
  std::mt19937 random(1);
  std::int64_t now = 86'400'000'000'000;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    now += random() % 100'000;
    actor.trace.records.push_back({.start = TimePoint(now),
                                   .end = TimePoint(now + random() % 50'000),
                                   .argument = 1 << 20,
                                   .flow = {40, 1'000'000 + i}});
  }
  EXPECT_LT(pack_actors({actor}).size(), 16 * actor.trace.records.size());
}

TEST(TraceBytes, ThatAreCutOrGoOnAreRefused) {
  const std::vector<std::byte> whole = pack_actors(example());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(unpack_actors(std::span(whole).first(size)).ok()) << size;
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(unpack_actors(longer).ok());
}

// Nothing but records of three bytes, names of one or actors of four, whose memory is many times
// that.
TEST(TraceBytes, OfWhichLittleWouldBecomeMuchAreRefused) {
  const auto refused = [](const std::vector<int>& head, const std::vector<int>& one, int times,
                          const std::vector<int>& end) {
    std::vector<std::byte> bytes;
    const auto add = [&](const std::vector<int>& more) {
      for (const int byte : more) bytes.push_back(static_cast<std::byte>(byte));
    };
    add({'T', 'R', 'T', '1'});
    add(head);
    for (int i = 0; i < times; ++i) add(one);
    add(end);
    return !unpack_actors(bytes).ok();
  };
  // 7 and 16,263 in bits of seven.
  const std::vector<int> few{7}, many{0x87, 0x7f};
  const auto one_actor = [](std::vector<int> before, const std::vector<int>& count) {
    before.insert(before.end(), count.begin(), count.end());
    return before;
  };
  const std::vector<int> record{1, 0, 0}, name{0}, actor{0, 0, 0, 0};
  EXPECT_FALSE(refused(one_actor({1, 0, 0, 0}, few), record, 7, {}));
  EXPECT_TRUE(refused(one_actor({1, 0, 0, 0}, many), record, 16'263, {}));
  EXPECT_FALSE(refused(one_actor({1, 0}, few), name, 7, {0, 0}));
  EXPECT_TRUE(refused(one_actor({1, 0}, many), name, 16'263, {0, 0}));
  EXPECT_FALSE(refused(few, actor, 7, {}));
  EXPECT_TRUE(refused(many, actor, 16'263, {}));
}

// Records may all have the same one.
TEST(TraceBytes, NamesAreNoLongerThanNamesAre) {
  std::vector<ActorTrace> actors{{std::string(1000, 'a'), {{std::string(1000, 'b')}, {}, 0}}};
  std::vector<std::byte> bytes = pack_actors(actors);
  const auto read = unpack_actors(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->front().name, std::string(64, 'a'));
  EXPECT_EQ(read->front().trace.names.front(), std::string(64, 'b'));
  // One byte more.
  ASSERT_EQ(bytes[5], std::byte{64});
  bytes[5] = std::byte{65};
  bytes.insert(bytes.begin() + 6, std::byte{'a'});
  EXPECT_FALSE(unpack_actors(bytes).ok());
}

}  // namespace
}  // namespace troupe::telemetry
