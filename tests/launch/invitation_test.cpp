#include "launch/invitation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::launch {
namespace {

using runtime::TimePoint;
using testing::HasSubstr;

constexpr TimePoint kStart{std::chrono::hours(1)};
const std::vector<std::string> kAll{"member.0", "member.1", "member.2"};

TEST(MemberNames, AreGivenInOrderAndOnce) {
  MemberNames names;
  for (const std::string& name : kAll) EXPECT_EQ(names.choose("", kAll, kStart).value(), name);
  const auto fourth = names.choose("", kAll, kStart);
  ASSERT_FALSE(fourth.ok());
  EXPECT_THAT(fourth.error().message, HasSubstr("all members of the run are there"));
}

TEST(MemberNames, OneThatWasPromisedIsGivenAgainWhenNobodyCame) {
  MemberNames names;
  ASSERT_TRUE(names.choose("member.1", kAll, kStart).ok());
  const auto early = names.choose("member.1", kAll, kStart + MemberNames::kPromise / 2);
  ASSERT_FALSE(early.ok());
  EXPECT_THAT(early.error().message, HasSubstr("member.1"));
  EXPECT_TRUE(names.choose("member.1", kAll, kStart + MemberNames::kPromise).ok());
}

// Else whoever comes first could take the place of a process that knows of no other.
TEST(MemberNames, ReservedOnesAreGivenByNameOnly) {
  MemberNames names({"member.0", "member.1"});
  EXPECT_EQ(names.choose("", kAll, kStart).value(), "member.2");
  EXPECT_FALSE(names.choose("", kAll, kStart).ok());
  EXPECT_EQ(names.choose("member.1", kAll, kStart).value(), "member.1");
  EXPECT_EQ(names.choose("member.0", kAll, kStart).value(), "member.0");
}

TEST(MemberInvitation, IsTheSameAfterItWasPacked) {
  const MemberInvitation invitation{"name: x\n", 7, "/data", "node-a"};
  const auto read = unpack_invitation(pack_invitation(invitation));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->topology, "name: x\n");
  EXPECT_EQ(read->members, 7u);
  EXPECT_EQ(read->data_folder, "/data");
  EXPECT_EQ(read->host, "node-a");
}

}  // namespace
}  // namespace troupe::launch
