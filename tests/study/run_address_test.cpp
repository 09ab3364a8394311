#include "study/run_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::study {
namespace {

using testing::HasSubstr;

config::ClusterSection listening_at(const std::string& listen) {
  config::ClusterSection cluster;
  cluster.listen = listen;
  return cluster;
}

std::string host_of(const std::string& address) { return address.substr(0, address.rfind(':')); }
std::string port_of(const std::string& address) { return address.substr(address.rfind(':')); }

TEST(RunAddress, HasTheHostOfTheTopologyAndAnotherPort) {
  for (const std::string host : {"127.0.0.1", "[::1]"}) {
    const auto made = run_address(listening_at(host + ":7"), 0);
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(host_of(made->listen), host);
    EXPECT_NE(port_of(made->listen), ":7");
    EXPECT_EQ(made->dial, made->listen);
  }
}

TEST(RunAddress, EveryAddressIsDialledAtOneOfThem) {
  const auto made = run_address(listening_at("*:7"), 0);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(host_of(made->listen), "*");
  EXPECT_NE(host_of(made->dial), "*");
  EXPECT_EQ(port_of(made->dial), port_of(made->listen));
}

// Nobody listens there yet.
TEST(RunAddress, PortsOfARunThatHasNotBegunAreLeftToIt) {
  const auto first = run_address(listening_at("127.0.0.1:7"), 0);
  const auto other = run_address(listening_at("127.0.0.1:7"), 0);
  ASSERT_TRUE(first.ok() && other.ok());
  EXPECT_NE(first->listen, other->listen);
}

// An address for documents, which no machine has.
TEST(RunAddress, HostThatIsNotThisMachineIsRefused) {
  const auto made = run_address(listening_at("192.0.2.1:7"), 0);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, runtime::ErrorKind::kUsage);
  EXPECT_THAT(made.error().message, HasSubstr("cluster.listen: 192.0.2.1 is no address of this"));
}

TEST(RunAddress, KeysThatCannotBeReadAreRefused) {
  config::ClusterSection cluster = listening_at("127.0.0.1:7");
  cluster.keys = "/nowhere";
  const auto made = run_address(cluster, 0);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace troupe::study
