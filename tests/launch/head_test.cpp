#include "launch/head.h"

#include <gmock/gmock.h>

#include "launch/invitation.h"

namespace troupe::launch {
namespace {

using testing::HasSubstr;

class HeadWire : public testing::Test {
 protected:
  runtime::Result<std::unique_ptr<runtime::Wire>> open() {
    return open_head_wire(request_, clock_, runtime::Log::silent());
  }

  LocalRunRequest request_;
  const runtime::SteadyClock clock_{};
};

TEST_F(HeadWire, IsNoneForARunInOneProcess) {
  const auto wire = open();
  ASSERT_TRUE(wire.ok());
  EXPECT_EQ(*wire, nullptr);
}

TEST_F(HeadWire, ATopologyThatMembersCannotBeToldIsRefusedAtOnce) {
  request_.members = 1;
  request_.listen = "127.0.0.1:0";
  request_.effective_topology.assign(MemberInvitation::kMostTopologyBytes, 'x');
  EXPECT_TRUE(open().ok());
  request_.effective_topology += 'x';
  const auto wire = open();
  ASSERT_FALSE(wire.ok());
  EXPECT_EQ(wire.error().kind, runtime::ErrorKind::kTopology);
  EXPECT_THAT(wire.error().message, HasSubstr("members can be told"));
}

}  // namespace
}  // namespace troupe::launch
