#include "runtime/message.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace troupe::runtime {
namespace {

struct Small {
  static constexpr std::string_view kName = "small";
  int value;
};
struct Other {
  static constexpr std::string_view kName = "other";
  int value;
};
struct Large {
  static constexpr std::string_view kName = "large";
  std::array<std::int64_t, 100> values;
};
// Counts how many of it are alive.
struct Counted {
  static constexpr std::string_view kName = "counted";
  explicit Counted(int& alive_in) : alive(&alive_in) { ++*alive; }
  Counted(Counted&& other) noexcept : alive(other.alive), text(std::move(other.text)) { ++*alive; }
  ~Counted() { --*alive; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(text.size()); }
  int* alive;
  std::string text = "twelve bytes";
};

TEST(Message, BodyIsSeenOnlyAsItsOwnType) {
  Message message = Message::of(Small{7});
  ASSERT_NE(message.as<Small>(), nullptr);
  EXPECT_EQ(message.as<Small>()->value, 7);
  EXPECT_EQ(message.as<Other>(), nullptr);
  EXPECT_EQ(message.name(), "small");
}

TEST(Message, LargeBodySurvivesMoves) {
  Large body{};
  body.values[99] = 123;
  Message first = Message::of(body);
  Message second = std::move(first);
  Message third;
  third = std::move(second);
  EXPECT_TRUE(second.empty());  // NOLINT(bugprone-use-after-move): what a move leaves is promised
  EXPECT_EQ(second.as<Large>(), nullptr);
  ASSERT_NE(third.as<Large>(), nullptr);
  EXPECT_EQ(third.as<Large>()->values[99], 123);
}

TEST(Message, BodyIsDestroyedOnceHoweverOftenMoved) {
  int alive = 0;
  {
    Message first = Message::of(Counted(alive));
    EXPECT_EQ(alive, 1);
    Message second = std::move(first);
    Message third = Message::of(Counted(alive));
    EXPECT_EQ(alive, 2);
    third = std::move(second);
    EXPECT_EQ(alive, 1);
    EXPECT_EQ(third.as<Counted>()->text, "twelve bytes");
  }
  EXPECT_EQ(alive, 0);
}

TEST(Message, CostsItsPayloadsItsOverheadAndWhatTheBodyOwns) {
  int alive = 0;
  const Message message =
      Message::of(Counted(alive), {Buffer::allocate(1000), Buffer::allocate(24)});
  EXPECT_EQ(message.bytes(), Message::kOverheadBytes + 1000 + 24 + 12);
}

TEST(Message, PayloadsMoveByPointer) {
  const Buffer buffer = Buffer::zeroed(4096);
  Message first = Message::of(Small{1}, {buffer});
  Message second = std::move(first);
  ASSERT_EQ(second.payloads().size(), 1u);
  EXPECT_EQ(second.payloads()[0].data(), buffer.data());
  const std::vector<Buffer> taken = second.take_payloads();
  EXPECT_EQ(taken[0].data(), buffer.data());
  EXPECT_TRUE(second.payloads().empty());
}

TEST(Message, UnsentMessageHasNoSenderAndHoldsNoCredit) {
  Message message = Message::of(Small{1});
  EXPECT_EQ(message.sender(), kOutside);
  EXPECT_EQ(message.sender_name(), "");
  EXPECT_EQ(message.port(), "");
  EXPECT_FALSE(message.holds_credit());
  message.release_credit();
}

}  // namespace
}  // namespace troupe::runtime
