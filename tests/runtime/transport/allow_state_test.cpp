#include "runtime/transport/allow_state.h"

#include <gtest/gtest.h>

#include "tests/runtime/transport/wire_stage.h"

namespace troupe::runtime {
namespace {

constexpr std::chrono::sys_seconds kStart{std::chrono::seconds(1'000'000)};
constexpr std::chrono::sys_seconds kUntil = kStart + std::chrono::minutes(10);
constexpr std::chrono::sys_seconds kLater = kUntil + std::chrono::hours(1);

const std::vector<AllowedKey> kNobody;
const std::vector<AllowedKey> kToken = {{"token", "joiner", kUntil}};

TEST(AllowState, OnlyKeysOfTheListThatHaveNotExpiredAreLetIn) {
  AllowState state;
  const std::vector<AllowedKey> listed = {{"node", "a"}, {"token", "joiner", kUntil}};
  EXPECT_TRUE(state.admits("node", listed, kLater));
  EXPECT_FALSE(state.admits("other", listed, kStart));
  EXPECT_FALSE(state.admits("token", listed, kUntil));
  EXPECT_FALSE(state.admits("token", kNobody, kLater));
}

TEST(AllowState, WhoWasLetInMayComeAgainAfterItsKeyHasExpired) {
  AllowState state;
  EXPECT_TRUE(state.admits("token", kToken, kStart));
  EXPECT_TRUE(state.admits("token", kToken, kLater));
  // Cleared away, as expired keys are.
  EXPECT_TRUE(state.admits("token", kNobody, kLater));
  EXPECT_FALSE(state.admits("another", kNobody, kLater));
}

TEST(AllowState, AKeyTakenOffTheListBeforeItsTimeIsRefusedFromThenOn) {
  AllowState state;
  EXPECT_TRUE(state.admits("token", kToken, kStart));
  EXPECT_FALSE(state.admits("token", kNobody, kUntil - std::chrono::seconds(1)));
  EXPECT_FALSE(state.admits("token", kNobody, kLater));
}

TEST(AllowState, ThatAKeyWasTakenOffIsSeenWhenAnybodyConnects) {
  AllowState state;
  EXPECT_TRUE(state.admits("token", kToken, kStart));
  EXPECT_FALSE(state.admits("another", kNobody, kStart));
  EXPECT_FALSE(state.admits("token", kNobody, kLater));
}

TEST(AllowState, AKeyWithoutAnEndIsGoodAsLongAsItIsListed) {
  AllowState state;
  const std::vector<AllowedKey> for_ever = {{"token", "joiner"}};
  EXPECT_TRUE(state.admits("token", kToken, kStart));
  EXPECT_TRUE(state.admits("token", for_ever, kStart));
  EXPECT_FALSE(state.admits("token", kNobody, kLater));
}

// The same through a listener's sockets.
TEST(AllowState, ANodeThatCameWithATokenConnectsAgainAfterItHasExpired) {
  const KeyPair here = *make_keys();
  const KeyPair joiner = *make_keys();
  const KeyPair late = *make_keys();
  std::chrono::sys_seconds now = kStart;
  ZmqWireOptions listening;
  listening.clock = &stage_clock();
  listening.listen = fresh_ipc_address();
  listening.keys = here;
  listening.allowed = {{joiner.public_key, "joiner", kUntil}, {late.public_key, "late", kUntil}};
  listening.wall_time = [&] { return now; };
  StageEnd listener(listening);
  const auto dial = [&](const KeyPair& keys) {
    ZmqWireOptions dialing;
    dialing.clock = &stage_clock();
    dialing.keys = keys;
    StageEnd dialer(dialing);
    dialer.dial(listener.wire->address() + "#" + here.public_key);
    EXPECT_TRUE(play({&listener, &dialer},
                     [&] { return !dialer.diary.open.empty() || !dialer.diary.ends.empty(); }));
    return !dialer.diary.open.empty();
  };
  EXPECT_TRUE(dial(joiner));
  now = kLater;
  EXPECT_TRUE(dial(joiner));
  EXPECT_FALSE(dial(late));
}

}  // namespace
}  // namespace troupe::runtime
