#include "launch/meeting/member_address.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "launch/machine/this_host.h"

namespace troupe::launch {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kKey = "#" + std::string(40, 'k');

std::string address_of(const std::string& head, const std::string& wanted = "",
                       bool has_keys = true) {
  const auto address = listen_address(head, wanted, has_keys);
  return address.ok() ? *address : "refused: " + address.error().message;
}

TEST(MemberAddress, BesideAHeadInTheFileSystemItIsASocketOfItsOwn) {
  const std::string begin = fmt::format("ipc:///tmp/run/member-{}-", ::getpid());
  EXPECT_THAT(address_of("ipc:///tmp/run/head"), StartsWith(begin));
  EXPECT_THAT(address_of("ipc:///tmp/run/head" + kKey), StartsWith(begin));
  // Two may be the same by chance, but hardly eight.
  std::set<std::string> different;
  for (int i = 0; i < 8; ++i) different.insert(address_of("ipc:///tmp/run/head"));
  EXPECT_GT(different.size(), 1U);
  EXPECT_THAT(address_of("ipc:///tmp/" + std::string(80, 'a') + "/head"), HasSubstr("--listen"));
}

TEST(MemberAddress, WithAHeadOnLoopbackItIsThereToo) {
  EXPECT_EQ(address_of("127.0.0.1:8500"), "tcp://127.0.0.1:0");
  EXPECT_EQ(address_of("localhost:8500", "", false), "tcp://127.0.0.1:0");
  EXPECT_EQ(address_of("[::1]:8500"), "tcp://[::1]:0");
}

TEST(MemberAddress, WhatPeopleWantCountsAndIsANumber) {
  EXPECT_EQ(address_of("127.0.0.1:8500", "localhost:8600"), "tcp://127.0.0.1:8600");
  EXPECT_EQ(address_of("10.0.0.5:8500" + kKey, "192.0.2.7:8600"), "tcp://192.0.2.7:8600");
  EXPECT_EQ(address_of("127.0.0.1:8500", "ipc:///tmp/m"), "ipc:///tmp/m");
  EXPECT_EQ(address_of("127.0.0.1:8500", "ipc://m/n"),
            fmt::format("ipc://{}", (std::filesystem::current_path() / "m/n").string()));
  EXPECT_THAT(address_of("127.0.0.1:8500", "*:8600"), HasSubstr("name one"));
  EXPECT_THAT(address_of("[::1]:8500", "[::]:8600"), HasSubstr("name one"));
  EXPECT_THAT(address_of("ipc:///tmp/run/head", "*:8600"), HasSubstr("name one"));
  EXPECT_THAT(address_of("127.0.0.1:8500", "8600"), HasSubstr("no port"));
}

TEST(MemberAddress, WhoeverWantsNoListenerHasNone) {
  for (const char* head : {"127.0.0.1:8500", "10.0.0.5:8500", "ipc:///tmp/run/head"}) {
    EXPECT_EQ(address_of(head, "none"), "");
  }
}

TEST(MemberAddress, WithAHeadElsewhereItIsTheNearEndOfTheWay) {
  EXPECT_EQ(address_of("192.0.2.1:8500", "", false), "");
  const auto way = address_towards("192.0.2.1");
  if (!way.ok()) GTEST_SKIP() << way.error().message;
  EXPECT_EQ(address_of("192.0.2.1:8500"), fmt::format("tcp://{}:0", *way));
  EXPECT_EQ(address_of("192.0.2.1:8500", "0.0.0.0:8600"), fmt::format("tcp://{}:8600", *way));
}

// Answers of which the last one stays, and a clock that moves with every pause.
struct Network {
  std::vector<runtime::Result<std::string>> answers;
  std::size_t asked = 0, paused = 0;
  runtime::ManualClock clock{};

  runtime::Result<std::string> wait() {
    return await_listen_address([&] { return answers[std::min(asked++, answers.size() - 1)]; },
                                std::chrono::seconds(3), clock,
                                [&](const runtime::Error&) {
                                  ++paused;
                                  clock.advance(std::chrono::seconds(1));
                                });
  }
};

TEST(MemberAddress, AWayToTheHeadIsWaitedForAndNothingElse) {
  const runtime::Error no_way{runtime::ErrorKind::kLostPeers, "no way"};
  Network late{{no_way, no_way, std::string("here")}};
  EXPECT_EQ(late.wait().value(), "here");
  EXPECT_EQ(late.paused, 2U);
  Network never{{no_way}};
  EXPECT_EQ(never.wait().error().message, "no way");
  EXPECT_EQ(never.paused, 3U);
  Network wrong{{runtime::Error{runtime::ErrorKind::kUsage, "no address"}}};
  EXPECT_EQ(wrong.wait().error().message, "no address");
  EXPECT_EQ(wrong.paused, 0U);
}

TEST(MemberAddress, TheNearEndOfTheWayIsOneOfThisMachine) {
  EXPECT_EQ(address_towards("127.0.0.1").value(), "127.0.0.1");
  EXPECT_FALSE(address_towards("no number").ok());
  for (const std::string& number : interface_addresses()) {
    const auto near = address_towards(number);
    ASSERT_TRUE(near.ok()) << near.error().message;
    EXPECT_TRUE(is_this_host(*near)) << *near;
  }
}

}  // namespace
}  // namespace troupe::launch
