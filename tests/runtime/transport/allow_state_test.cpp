#include "runtime/transport/zmq_admission.h"

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
  EXPECT_EQ(state.admits("node", listed, kLater), Admission::kAdmitted);
  EXPECT_EQ(state.admits("other", listed, kStart), Admission::kRefused);
  EXPECT_EQ(state.admits("token", listed, kUntil), Admission::kRefused);
  EXPECT_EQ(state.admits("token", kNobody, kLater), Admission::kRefused);
}

TEST(AllowState, WhoWasLetInMayComeAgainAfterItsKeyHasExpired) {
  AllowState state;
  EXPECT_EQ(state.admits("token", kToken, kStart), Admission::kAdmitted);
  EXPECT_EQ(state.admits("token", kToken, kLater), Admission::kExpired);
  // Cleared away, as expired keys are.
  EXPECT_EQ(state.admits("token", kNobody, kLater), Admission::kExpired);
  EXPECT_EQ(state.admits("another", kNobody, kLater), Admission::kRefused);
}

TEST(AllowState, AKeyTakenOffTheListBeforeItsTimeIsRefusedFromThenOn) {
  AllowState state;
  EXPECT_EQ(state.admits("token", kToken, kStart), Admission::kAdmitted);
  EXPECT_EQ(state.admits("token", kNobody, kUntil - std::chrono::seconds(1)), Admission::kRefused);
  EXPECT_EQ(state.admits("token", kNobody, kLater), Admission::kRefused);
}

TEST(AllowState, ThatAKeyWasTakenOffIsSeenWhenAnybodyConnects) {
  AllowState state;
  EXPECT_EQ(state.admits("token", kToken, kStart), Admission::kAdmitted);
  EXPECT_EQ(state.admits("another", kNobody, kStart), Admission::kRefused);
  EXPECT_EQ(state.admits("token", kNobody, kLater), Admission::kRefused);
}

TEST(AllowState, AKeyWithoutAnEndIsGoodAsLongAsItIsListed) {
  AllowState state;
  const std::vector<AllowedKey> for_ever = {{"token", "joiner"}};
  EXPECT_EQ(state.admits("token", kToken, kStart), Admission::kAdmitted);
  EXPECT_EQ(state.admits("token", for_ever, kStart), Admission::kAdmitted);
  EXPECT_EQ(state.admits("token", kNobody, kLater), Admission::kRefused);
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
  // Whether the listener takes the key of the newest connection for expired.
  const auto expired = [&] { return listener.diary.infos.rbegin()->second.key_expired; };
  EXPECT_TRUE(dial(joiner));
  EXPECT_FALSE(expired());
  now = kLater;
  EXPECT_TRUE(dial(joiner));
  EXPECT_TRUE(expired());
  EXPECT_EQ(listener.diary.infos.rbegin()->second.key, joiner.public_key);
  EXPECT_FALSE(dial(late));
}

}  // namespace
}  // namespace troupe::runtime
