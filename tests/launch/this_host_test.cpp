#include "launch/this_host.h"

#include <gtest/gtest.h>

#include "launch/nodes_file.h"

namespace troupe::launch {
namespace {

TEST(ThisHost, LoopbackAndItsOwnNameAreThisMachine) {
  for (const char* host : {"127.0.0.1", "127.3.2.1", "localhost", "::1"}) {
    EXPECT_TRUE(is_this_host(host)) << host;
  }
  EXPECT_TRUE(is_this_host(host_name()));
}

// Numbers of documentation (RFC 5737), which no machine has.
TEST(ThisHost, OtherAddressesAndNamesThatLeadNowhereAreNot) {
  for (const char* host : {"192.0.2.1", "203.0.113.9", "elsewhere.invalid", "*", "0.0.0.0", ""}) {
    EXPECT_FALSE(is_this_host(host)) << host;
  }
}

TEST(ThisHost, AddressesOfItsInterfacesAreItsOwnWithIPv4First) {
  bool six = false;
  for (const std::string& number : interface_addresses()) {
    EXPECT_TRUE(is_this_host(number)) << number;
    EXPECT_FALSE(number.starts_with("127.") || number == "::1" || number.starts_with("fe80:"));
    const bool is_six = number.find(':') != std::string::npos;
    EXPECT_TRUE(is_six || !six) << number << " behind one of IPv6";
    six = is_six;
  }
}

TEST(ThisHost, ProcessesOfOneMachineHaveOneIdentityAndALoad) {
  EXPECT_EQ(machine_identity(), machine_identity());
  EXPECT_GE(host_load(), 0.0);
}

}  // namespace
}  // namespace troupe::launch
