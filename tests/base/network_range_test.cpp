#include "runtime/base/network_range.h"

#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

bool has(const char* network, const char* address) {
  const auto range = NetworkRange::parse(network);
  EXPECT_TRUE(range.ok()) << network;
  return range.ok() && range->has(address);
}

TEST(NetworkRange, HasTheAddressesThatBeginLikeIt) {
  EXPECT_TRUE(has("10.1.0.0/16", "10.1.255.3"));
  EXPECT_FALSE(has("10.1.0.0/16", "10.2.0.0"));
  EXPECT_TRUE(has("10.1.2.128/25", "10.1.2.200"));
  EXPECT_FALSE(has("10.1.2.128/25", "10.1.2.127"));
  EXPECT_TRUE(has("10.1.2.3/32", "10.1.2.3"));
  EXPECT_FALSE(has("10.1.2.3/32", "10.1.2.2"));
  EXPECT_TRUE(has("0.0.0.0/0", "192.168.1.1"));
  EXPECT_TRUE(has("fd00::/8", "[fd12::1]"));
  EXPECT_TRUE(has("fd00::/8", "fd12::1"));
  EXPECT_FALSE(has("fd00::/8", "fe80::1"));
}

TEST(NetworkRange, TellsBothKindsOfAddressesApart) {
  EXPECT_FALSE(has("0.0.0.0/0", "fd00::1"));
  EXPECT_FALSE(has("::/1", "10.0.0.1"));
  EXPECT_FALSE(has("::/0", "10.0.0.1"));
  EXPECT_TRUE(has("any", "10.0.0.1"));
  EXPECT_TRUE(has("any", "fd00::1"));
}

TEST(NetworkRange, CountsTheBitsThatAddressesBeginWithAlike) {
  EXPECT_EQ(NetworkRange::bits_alike("10.1.2.3", "10.1.2.3"), 32);
  EXPECT_EQ(NetworkRange::bits_alike("10.1.2.3", "10.1.2.2"), 31);
  EXPECT_EQ(NetworkRange::bits_alike("10.1.2.3", "10.2.2.3"), 14);
  EXPECT_EQ(NetworkRange::bits_alike("10.1.2.3", "200.1.2.3"), 0);
  EXPECT_EQ(NetworkRange::bits_alike("fd00::1", "[fd00::3]"), 126);
  EXPECT_EQ(NetworkRange::bits_alike("::ffff:10.1.2.3", "::ffff:10.1.2.3"), 128);
  EXPECT_EQ(NetworkRange::bits_alike("10.1.2.3", "::ffff:10.1.2.3"), 0);
  EXPECT_EQ(NetworkRange::bits_alike("node-a", "node-a"), 0);
}

TEST(NetworkRange, WhatIsNoAddressIsInNone) {
  EXPECT_FALSE(has("any", "node-a"));
  EXPECT_FALSE(has("any", ""));
  EXPECT_FALSE(NetworkRange().has("10.0.0.1"));
}

TEST(NetworkRange, WhatIsNoNetworkIsRefused) {
  for (const char* text : {"", "10.1.0.0", "10.1.0.0/33", "10.1.0.0/-1", "10.1.0.0/", "10.1/16",
                           "fd00::/129", "all", "10.1.0.0/16 ", "/16"}) {
    EXPECT_FALSE(NetworkRange::parse(text).ok()) << text;
  }
}

}  // namespace
}  // namespace troupe::runtime
