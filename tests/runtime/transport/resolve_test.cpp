#include "runtime/transport/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::runtime {
namespace {

using testing::HasSubstr;

std::string complaint(const std::string& text) {
  const auto parsed = parse_address(text);
  return parsed.ok() ? "" : parsed.error().message;
}

TEST(Address, ItsPartsAreTold) {
  for (const char* text : {"tcp://node-a:7000", "node-a:7000"}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address.ok());
    EXPECT_EQ(address->host, "node-a");
    EXPECT_EQ(address->port, 7000);
    EXPECT_EQ(address->key, "");
    EXPECT_EQ(address->text(), "tcp://node-a:7000");
  }
  EXPECT_EQ(parse_address("ipc:///tmp/a")->path, "/tmp/a");
  EXPECT_EQ(parse_address("[::1]:5")->host, "::1");
  EXPECT_EQ(parse_address("tcp://[::1]:5")->text(), "tcp://[::1]:5");
}

TEST(Address, AKeyOfEarlierReleasesMayHoldTheCharacterThatBeginsIt) {
  const auto address = parse_address("tcp://a:1#0###056789012345678901234567890123456789");
  ASSERT_TRUE(address.ok()) << address.error().message;
  EXPECT_EQ(address->key.size(), 64u);
  EXPECT_EQ(address->text(), "tcp://a:1");
}

TEST(Address, WhatCannotBeMeantIsQuoted) {
  EXPECT_THAT(complaint("node-a"), HasSubstr("'node-a': it has no port"));
  EXPECT_THAT(complaint("tcp://a:70000"), HasSubstr("not a port"));
  EXPECT_THAT(complaint("tcp://a:"), HasSubstr("not a port"));
  EXPECT_THAT(complaint("tcp://a:1x"), HasSubstr("not a port"));
  EXPECT_THAT(complaint("tcp://a:-1"), HasSubstr("not a port"));
  EXPECT_THAT(complaint("tcp://:1"), HasSubstr("no host"));
  EXPECT_THAT(complaint("::1:1"), HasSubstr("in brackets"));
  EXPECT_THAT(complaint("udp://a:1"), HasSubstr("neither tcp nor ipc"));
  EXPECT_THAT(complaint("ipc://"), HasSubstr("no path"));
  EXPECT_THAT(complaint("ipc://" + std::string(100, 'a')), HasSubstr("at most 99"));
  EXPECT_THAT(complaint("a b:1"), HasSubstr("not the name of a host"));
  EXPECT_THAT(complaint(""), HasSubstr("no port"));
}

TEST(Address, AKeyMayStandBehindItInDigitsOrAsEarlierReleasesWroteIt) {
  const std::string digits(64, 'a');
  EXPECT_EQ(parse_address("a:1#" + digits)->key, digits);
  EXPECT_EQ(without_key("[::1]:1#" + digits), "[::1]:1");
  const std::string z85 = "01234567890#2345678901234567890123456789";
  EXPECT_EQ(parse_address("a:1#" + z85)->key.size(), 64u);
  EXPECT_EQ(without_key("a:1#" + z85), "a:1");
  EXPECT_THAT(complaint("a:1#" + std::string(40, '#')), HasSubstr("is not a key"));
}

TEST(Address, AKeyOfAnotherLengthIsNoPort) {
  const std::string key(64, 'a');
  for (const std::string address : {"tcp://a:1", "a:1", "[::1]:1"}) {
    EXPECT_THAT(complaint(address + "#" + key.substr(1)),
                HasSubstr("'" + address + "#KEY': the key after # has 63 characters, 64 "));
    EXPECT_THAT(complaint(address + "#" + key + "0"), HasSubstr("has 65 characters, 64 "));
    EXPECT_THAT(complaint(address + "#"), HasSubstr("has 0 characters, 64 "));
  }
}

TEST(Address, AClientsAddressIsReadAsItWasWritten) {
  for (const std::uint32_t client : {0U, 7U, UINT32_MAX}) {
    EXPECT_EQ(relay_client(relay_address(client)), client);
  }
  for (const std::string no_address : {"", "relay://", "relay://-1", "relay://4294967296",
                                       "relay://7 ", "relay://x", "tcp://10.0.0.1:7", "7"}) {
    EXPECT_FALSE(relay_client(no_address)) << no_address;
  }
}

TEST(Resolve, LoopbackIsToldFromTheRest) {
  const auto loopback = [](const char* text) { return resolve(*parse_address(text))->loopback; };
  EXPECT_TRUE(loopback("127.0.0.1:1"));
  EXPECT_TRUE(loopback("127.9.9.9:1"));
  EXPECT_TRUE(loopback("[::1]:1"));
  EXPECT_TRUE(loopback("ipc:///tmp/a"));
  EXPECT_FALSE(loopback("128.0.0.1:1"));
  EXPECT_FALSE(loopback("0.0.0.0:1"));
  EXPECT_FALSE(loopback("[::]:1"));
  EXPECT_FALSE(loopback("*:1"));
  EXPECT_TRUE(resolve(*parse_address("*:1"))->any);
}

TEST(Resolve, EndpointsAreNumeric) {
  EXPECT_EQ(resolve(*parse_address("localhost:7000"))->endpoint, "tcp://127.0.0.1:7000");
  EXPECT_EQ(resolve(*parse_address("[::1]:7000"))->endpoint, "tcp://[::1]:7000");
  EXPECT_EQ(resolve(*parse_address("ipc:///tmp/a"))->endpoint, "ipc:///tmp/a");
}

TEST(Resolve, AnUnknownNameSaysSo) {
  const auto resolved = resolve(*parse_address("no-such-host.invalid:1"));
  ASSERT_FALSE(resolved.ok());
  EXPECT_EQ(resolved.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(resolved.error().message, HasSubstr("'no-such-host.invalid'"));
}

}  // namespace
}  // namespace troupe::runtime
