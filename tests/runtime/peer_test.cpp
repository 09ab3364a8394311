#include "runtime/node/peer.h"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

TEST(Peer, PacketIsTakenOnceAndOnlyAfterTheOneBeforeIt) {
  Peer peer("b", "", TimePoint(0), SilenceOptions{});
  EXPECT_EQ(peer.arrival(Lane::kData, 1, 10), Peer::Arrival::kNext);
  EXPECT_EQ(peer.arrival(Lane::kData, 1, 10), Peer::Arrival::kAgain);
  EXPECT_EQ(peer.arrival(Lane::kData, 3, 10), Peer::Arrival::kGap);
  EXPECT_EQ(peer.arrival(Lane::kControl, 1, 10), Peer::Arrival::kNext);
  EXPECT_EQ(peer.arrival(Lane::kData, 2, 10), Peer::Arrival::kNext);
  EXPECT_EQ(peer.received(), (LaneCounts{1, 2, 0}));
}

TEST(Peer, PacketIsKeptUntilItIsAcknowledged) {
  Peer peer("b", "", TimePoint(0), SilenceOptions{});
  for (int i = 0; i < 3; ++i) (void)peer.keep(Lane::kData, {});
  EXPECT_EQ(peer.next_sequence(Lane::kData), 4U);
  EXPECT_TRUE(peer.acknowledged({0, 2, 0}));
  EXPECT_EQ(peer.kept(Lane::kData).size(), 1U);
  EXPECT_TRUE(peer.acknowledged({0, 1, 0}));  // told again, and late
  EXPECT_EQ(peer.kept(Lane::kData).size(), 1U);
  EXPECT_FALSE(peer.acknowledged({0, 4, 0}));
  EXPECT_TRUE(peer.acknowledged({0, 3, 0}));
  EXPECT_TRUE(peer.all_acknowledged());
}

TEST(Peer, AnotherProcessInItsPlaceIsNotMissed) {
  Peer peer("b", "", TimePoint(0), SilenceOptions{});
  peer.rhythm.missed = true;
  peer.finish(Peer::State::kLost, {ErrorKind::kLostPeers, "silent"}, TimePoint(1));
  peer.renew("b.2", TimePoint(2));
  EXPECT_FALSE(peer.rhythm.missed);
}

}  // namespace
}  // namespace troupe::runtime
