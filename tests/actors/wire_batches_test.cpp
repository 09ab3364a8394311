// What a member without data and the head's loader tell each other, on its way.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "runtime/transport/packets.h"
#include "tests/actors/field_archives.h"
#include "tests/actors/wire_parts.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;

// For a lone member that has taken over all there is, while other work comes later.
TEST(WireMessages, LargestFeedFitsAHeader) {
  pipeline::View view;
  view.ring = {1023};
  view.reached = {0};
  view.owners.assign(pipeline::kMostMicroBatches, 1023);
  view.later.assign(pipeline::kMostAssignments, {7, view.owners});
  Feed feed;
  feed.view = std::make_shared<const pipeline::View>(view);
  std::vector<std::uint32_t> all(pipeline::kMostMicroBatches);
  std::iota(all.begin(), all.end(), 0U);
  constexpr auto kLast = std::numeric_limits<std::uint32_t>::max();
  feed.missing.assign(kMostIncomplete, {kLast, all});
  EXPECT_LT(parts_of(feed).header.size(), runtime::Packet::kMostHeaderBytes - 1024);
  EXPECT_EQ(round_trip(feed).missing, feed.missing);
}

TEST(WireMessages, FeedOfMoreIterationsThanAreUnderWayIsNotPacked) {
  Draw draw(22);
  Feed feed = drawn<Feed>(draw);
  feed.missing.assign(4, {1, {2}});
  EXPECT_EQ(problem_of(parts_of(feed)), "");
  feed.missing.assign(5, {1, {2}});
  EXPECT_DEATH(parts_of(feed), "missing");
}

Parts wire_batch(std::size_t images, std::size_t conditions, std::size_t ids) {
  return parts_of(BatchMessage{3, 4, 2, 5, 6},
                  {Buffer::zeroed(images), Buffer::zeroed(conditions), Buffer::zeroed(ids)});
}

// Only the replica knows of what model an image is.
TEST(WireMessages, BatchWithoutItsEventsIsRefused) {
  EXPECT_EQ(problem_of(wire_batch(40, 24, 16)), "");
  EXPECT_EQ(problem_of(wire_batch(0, 24, 16)), "");
  EXPECT_NE(problem_of(wire_batch(41, 24, 16)), "");
  EXPECT_NE(problem_of(wire_batch(40, 20, 16)), "");
  EXPECT_NE(problem_of(wire_batch(40, 24, 24)), "");
  Parts parts = wire_batch(40, 24, 16);
  parts.payloads.pop_back();
  EXPECT_NE(problem_of(parts), "");
  parts = wire_batch(40, 24, 16);
  parts.payloads[2] = Buffer::zeroed(17).slice(1, 16);
  EXPECT_NE(problem_of(parts), "");
}

}  // namespace
}  // namespace troupe::actors
