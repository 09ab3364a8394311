#include "launch/run/head.h"

#include <gmock/gmock.h>

#include <string>

#include "launch/meeting/invitation.h"
#include "launch/meeting/key_folder.h"
#include "runtime/base/disk.h"
#include "tests/launch/launch_support.h"
#include "tests/support/fails_with.h"

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
  ASSERT_THAT(open(), FailsWith(runtime::ErrorKind::kTopology, "members can be told"));
}

// A head whose first members are all on this machine tells others where to join.
class HeadThatAwaitsNobody : public HeadWire {
 protected:
  void SetUp() override {
    request_.members = 1;
    request_.members_here = {"member.0"};
    request_.listen = "127.0.0.1:0";
    request_.topology.cluster.keys = folder_ / "keys";
    runtime::FileDisk disk;
    key_ = make_key_folder(*request_.topology.cluster.keys, "here", disk)->own.public_key;
  }
  std::string told() {
    std::string lines;
    runtime::LogOptions options;
    options.to_stderr = false;
    options.also = [&](runtime::LogLevel, std::string_view line) { lines += line; };
    const auto log = runtime::Log::open(options);
    const auto wire = open();
    address_ = (*wire)->address();
    tell_members(request_, **wire, *log);
    return lines;
  }

  const TemporaryFolder folder_;
  std::string key_, address_;
};

TEST_F(HeadThatAwaitsNobody, TellsWhereOthersMayJoin) {
  const std::string lines = told();
  EXPECT_THAT(lines, HasSubstr("others may join on this machine: troupe join '" + address_ + "#" +
                               key_ + "' --key DIR"));
  EXPECT_THAT(address_, testing::Not(testing::EndsWith(":0")));
}

TEST_F(HeadThatAwaitsNobody, IsSilentWhenNobodyMayOrCan) {
  request_.topology.cluster.joiners = 0;
  EXPECT_EQ(told(), "");
  request_.topology.cluster.joiners = 8;
  request_.topology.cluster.keys.reset();
  EXPECT_EQ(told(), "");
}

}  // namespace
}  // namespace troupe::launch
