#include "launch/meeting/invitation.h"

#include <gmock/gmock.h>

#include "config/topology.h"
#include "tests/support/fails_with.h"

namespace troupe::launch {
namespace {

using testing::HasSubstr;

constexpr DataIdentity kData{{7, 9}, 11, 3};

TEST(MemberInvitation, IsTheSameAfterItWasPacked) {
  const MemberInvitation invitation{
      "name: x\n", 7, 12, "/data", "node-a", kData, 8503, runtime::draw_relay_token(), {0, 255, 3}};
  const auto read = unpack_invitation(pack_invitation(invitation));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, invitation);
}

TEST(MemberInvitation, TheLongestTopologyFits) {
  const MemberInvitation invitation{std::string(MemberInvitation::kMostTopologyBytes, 'x'),
                                    1,
                                    1,
                                    std::string(4096, 'd'),
                                    std::string(4096, 'h'),
                                    kData};
  const auto read = unpack_invitation(pack_invitation(invitation));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, invitation);
}

TEST(MemberInvitation, NumbersOfMembersThatNoRunHasAreRefused) {
  for (const std::uint32_t members : {0u, config::kMostMembers + 1}) {
    const auto read =
        unpack_invitation(pack_invitation({"name: x\n", members, members, "/data", "a", kData}));
    ASSERT_THAT(read, FailsWith(runtime::ErrorKind::kLostPeers, "the invitation cannot be read"))
        << members;
  }
  EXPECT_FALSE(unpack_invitation(pack_invitation({"name: x\n", 3, 2, "/data", "a", kData})).ok());
}

TEST(MemberInvitation, EpochThatNoDataHasIsRefused) {
  for (const std::uint64_t iterations : {std::uint64_t{0}, std::uint64_t{1} << 33}) {
    const MemberInvitation invitation{"name: x\n", 1, 1, "/data", "a", {{7, 9}, iterations}};
    EXPECT_FALSE(unpack_invitation(pack_invitation(invitation)).ok()) << iterations;
  }
}

TEST(MemberInvitation, ATopologyThatMembersCannotBeToldIsRefused) {
  std::string topology(MemberInvitation::kMostTopologyBytes, 'x');
  EXPECT_TRUE(check_topology_fits(topology).ok());
  topology += 'x';
  const auto fits = check_topology_fits(topology);
  ASSERT_FALSE(fits.ok());
  EXPECT_EQ(fits.error().kind, runtime::ErrorKind::kTopology);
  EXPECT_THAT(fits.error().message, HasSubstr("members can be told"));
}

TEST(MemberInvitation, LongestOrderBesideATopologyFitsAndALongerOneIsRefused) {
  MemberInvitation invitation{std::string(1 << 19, 'x'), 1, 1, "/data", "a", kData};
  invitation.order.assign((MemberInvitation::kMostTopologyBytes - (1 << 19)) / 2, 255);
  EXPECT_TRUE(check_order_fits(invitation.topology, invitation.order).ok());
  const auto read = unpack_invitation(pack_invitation(invitation));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->order, invitation.order);
  invitation.order.push_back(0);
  EXPECT_THAT(check_order_fits(invitation.topology, invitation.order),
              FailsWith(runtime::ErrorKind::kUsage, "members can be told"));
}

}  // namespace
}  // namespace troupe::launch
