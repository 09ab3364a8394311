#include "launch/machine/this_host.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "runtime/base/host_name.h"

namespace troupe::launch {
namespace {

TEST(ThisHost, LoopbackAndItsOwnNameAreThisMachine) {
  for (const char* host : {"127.0.0.1", "127.3.2.1", "localhost", "::1"}) {
    EXPECT_TRUE(is_this_host(host)) << host;
  }
  EXPECT_TRUE(is_this_host(runtime::host_name()));
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

TEST(ThisHost, ThreadsThatRunAreReadFromTheTextOfTheSystem) {
  std::istringstream text("0.52 0.58 0.59 7/1043 12345\n"), other("no such file"), none;
  EXPECT_EQ(runnable_threads(text), 7);
  EXPECT_EQ(runnable_threads(other), 0);
  EXPECT_EQ(runnable_threads(none), 0);
}

TEST(ThisHost, IsIdentifiedWhereTheSystemTellsWhichBootItIs) {
  EXPECT_EQ(machine_identity().empty(),
            !std::filesystem::exists("/proc/sys/kernel/random/boot_id"));
}

}  // namespace
}  // namespace troupe::launch
