#include "launch/meeting/join_lines.h"

#include <gmock/gmock.h>

#include "launch/meeting/key_folder.h"
#include "launch/meeting/node_uplink.h"
#include "runtime/base/clock.h"
#include "runtime/base/disk.h"
#include "runtime/base/host_name.h"
#include "tests/launch/launch_support.h"

namespace troupe::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Strings = std::vector<std::string>;
using Hosts = std::vector<config::HostSection>;

// A machine with two networks, and its name for itself.
const Strings kInterfaces{"10.0.0.5", "192.168.1.7", "fd00::5"};
constexpr const char* kBound = "tcp://my-own-name:8500";

Strings dialed(const std::string& listen, const Hosts& hosts = {},
               const Strings& interfaces = kInterfaces) {
  return addresses_to_dial(listen, kBound, hosts, interfaces);
}

TEST(AddressesToDial, WhoeverListensEverywhereIsDialedAtItsInterfaces) {
  for (const char* everywhere : {"0.0.0.0:8500", "*:8500"}) {
    EXPECT_THAT(dialed(everywhere), ElementsAre("tcp://10.0.0.5:8500", "tcp://192.168.1.7:8500"))
        << everywhere;
  }
  EXPECT_THAT(dialed("[::]:8500"),
              ElementsAre("tcp://10.0.0.5:8500", "tcp://192.168.1.7:8500", "tcp://[fd00::5]:8500"));
}

TEST(AddressesToDial, ThePortIsTheOneThatWasFound) {
  EXPECT_THAT(addresses_to_dial("0.0.0.0:0", "tcp://x:4711", {}, {"10.0.0.5"}),
              ElementsAre("tcp://10.0.0.5:4711"));
}

TEST(AddressesToDial, AnAddressOfItsOwnIsDialedAsItIs) {
  EXPECT_THAT(addresses_to_dial("10.0.0.5:8500", "tcp://10.0.0.5:8500", {}, kInterfaces),
              ElementsAre("tcp://10.0.0.5:8500"));
  EXPECT_THAT(addresses_to_dial("ipc:///a/head", "ipc:///a/head", {}, kInterfaces),
              ElementsAre("ipc:///a/head"));
}

TEST(AddressesToDial, TheNameThatTheTopologyHasForThisHostComesBeforeItsInterfaces) {
  EXPECT_THAT(dialed("*:8500", {{"elsewhere.invalid", 1}, {runtime::host_name(), 1}}),
              ElementsAre("tcp://" + runtime::host_name() + ":8500"));
  // One that only this host can use is none.
  EXPECT_THAT(dialed("*:8500", {{"localhost", 1}, {"127.0.0.1", 1}}, {"10.0.0.5"}),
              ElementsAre("tcp://10.0.0.5:8500"));
}

TEST(AddressesToDial, WithoutAnyNetworkItsNameIsAllThereIs) {
  EXPECT_THAT(dialed("0.0.0.0:8500", {}, {}), ElementsAre(kBound));
}

config::ClusterSection two_hosts() {
  config::ClusterSection cluster;
  cluster.hosts = {{"node-a", 1}, {"node-b", 2}};
  return cluster;
}

TEST(JoinLines, EveryMemberThatIsAwaitedHasOne) {
  EXPECT_EQ(join_lines(two_hosts(), 4, {"member.0"}, {"tcp://a:1"}, ""),
            "\n  on node-b: troupe join 'tcp://a:1' --node member.1"
            "\n  on node-b: troupe join 'tcp://a:1' --node member.2"
            "\n  on any host: troupe join 'tcp://a:1' --node member.3"
            "\n  and where the data is not, with --data remote");
  EXPECT_EQ(join_lines(two_hosts(), 1, {"member.0"}, {"tcp://a:1", "tcp://b:1"}, ""), "");
}

TEST(JoinLines, FurtherAddressesFollowAndAllCarryTheKey) {
  EXPECT_EQ(join_lines({}, 1, {}, {"tcp://a:1", "tcp://b:1"}, "K$Y"),
            "\n  on any host: troupe join 'tcp://a:1#K$Y' --key DIR --node member.0"
            "\n  or, where that is not reached, at 'tcp://b:1#K$Y'"
            "\n  and where the data is not, with --data remote");
}

TEST(NewcomerLines, TellTheCommandAndTheFurtherAddresses) {
  EXPECT_EQ(newcomer_lines({"tcp://a:1"}, "", true),
            "others may join on this machine: troupe join 'tcp://a:1'");
  EXPECT_EQ(newcomer_lines({"tcp://a:1", "tcp://b:1"}, "K", false),
            "others may join: troupe join 'tcp://a:1#K' --key DIR\n"
            "  or, where that is not reached, at 'tcp://b:1#K'");
}

// What a head says whose first members are all on this machine.
class HeadThatAwaitsNobody : public testing::Test {
 protected:
  void SetUp() override {
    cluster_.keys = folder_ / "keys";
    runtime::FileDisk disk;
    key_ = make_key_folder(*cluster_.keys, "here", disk)->own.public_key;
  }
  std::string told() {
    std::string lines;
    runtime::LogOptions options;
    options.to_stderr = false;
    options.also = [&](runtime::LogLevel, std::string_view line) { lines += line; };
    const auto log = runtime::Log::open(options);
    const std::string listen = "127.0.0.1:0";
    const runtime::SteadyClock clock;
    const auto wire = open_wire(listen, {cluster_.keys, std::nullopt}, clock, *log);
    address_ = (*wire)->address();
    tell_members(cluster_, 1, {"member.0"}, listen, **wire, *log);
    return lines;
  }

  const TemporaryFolder folder_;
  config::ClusterSection cluster_;
  std::string key_, address_;
};

TEST_F(HeadThatAwaitsNobody, TellsWhereOthersMayJoin) {
  const std::string lines = told();
  EXPECT_THAT(lines, HasSubstr("others may join on this machine: troupe join '" + address_ + "#" +
                               key_ + "' --key DIR"));
  EXPECT_THAT(address_, testing::Not(testing::EndsWith(":0")));
}

TEST_F(HeadThatAwaitsNobody, IsSilentWhenNobodyMayOrCan) {
  cluster_.joiners = 0;
  EXPECT_EQ(told(), "");
  cluster_.joiners = 8;
  cluster_.keys.reset();
  EXPECT_EQ(told(), "");
}

}  // namespace
}  // namespace troupe::launch
