// What links promise: order, credits in messages and bytes, returns, drops.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>

#include "runtime/base/random.h"
#include "tests/runtime/stage.h"

namespace troupe::runtime {
namespace {

using std::chrono::milliseconds;

// What a test knows of one link by itself. Counted up before a send and down before the credit can
// be back: right after a send it holds what was out then, or less.
struct Ledger {
  std::atomic<std::int64_t> messages{0};
  std::atomic<std::int64_t> bytes{0};
  std::atomic<std::int64_t> sent{0};
  std::atomic<std::int64_t> received{0};
  std::atomic<int> violations{0};
};

struct Tracked {
  static constexpr std::string_view kName = "tracked";
  Tracked(Ledger& ledger_in, std::int64_t number_in, std::int64_t cost_in)
      : ledger(&ledger_in), number(number_in), cost(cost_in) {}
  Tracked(Tracked&& other) noexcept
      : ledger(std::exchange(other.ledger, nullptr)), number(other.number), cost(other.cost) {}
  ~Tracked() {
    if (ledger == nullptr) return;
    ledger->bytes -= cost;
    --ledger->messages;
  }
  Ledger* ledger;
  std::int64_t number;
  std::int64_t cost;
};

constexpr std::int64_t kMessageCredits = 5;
constexpr std::int64_t kByteCredits = 4000;

// Sends `count` messages of random sizes, some larger than all byte credits, and checks at each
// send that the link was not overdrawn.
Script random_sender(Ledger& ledger, std::uint64_t seed, std::int64_t count) {
  struct State {
    std::int64_t next = 0;
  };
  auto state = std::make_shared<State>();
  const auto send_all = [&ledger, seed, count, state](Context& context) {
    for (; state->next < count; ++state->next) {
      const std::uint64_t draw = mix64(seed ^ static_cast<std::uint64_t>(state->next));
      const auto payload = static_cast<std::int64_t>(draw % 16 == 0 ? 6000 : draw % 1500);
      const std::int64_t cost = payload + Message::kOverheadBytes;
      ++ledger.messages;
      ledger.bytes += cost;
      Message message = Message::of(Tracked(ledger, state->next, cost),
                                    {Buffer::allocate(static_cast<std::size_t>(payload))});
      if (!context.send("out", message)) return;
      const std::int64_t bytes = ledger.bytes;
      const std::int64_t out = ledger.messages;
      const bool within = out <= kMessageCredits && (bytes <= kByteCredits || out <= 1);
      if (!within) ++ledger.violations;
      ++ledger.sent;
    }
    context.finish();
  };
  Script script;
  script.start = send_all;
  script.credit_returned = [send_all](Context& context, std::string_view) { send_all(context); };
  return script;
}

// Receives `count` messages of each link in order, keeping a random number of them for a while.
Script hoarding_receiver(std::vector<std::unique_ptr<Ledger>>& ledgers, std::uint64_t seed,
                         std::int64_t count) {
  struct State {
    std::deque<Message> kept;
    std::int64_t received = 0;
  };
  auto state = std::make_shared<State>();
  const auto let_go = [state, count, &ledgers](Context& context) {
    if (state->received < count * static_cast<std::int64_t>(ledgers.size())) return;
    state->kept.clear();
    context.finish();
  };
  Script script;
  script.receive = [state, seed, let_go](Context& context, Message message) {
    const Tracked& body = *message.as<Tracked>();
    if (body.number != body.ledger->received++) ++body.ledger->violations;
    ++state->received;
    const std::uint64_t draw = mix64(~seed ^ static_cast<std::uint64_t>(state->received));
    if (draw % 3 == 0) {
      if (state->kept.empty()) context.after(milliseconds(1));
      state->kept.push_back(std::move(message));
    }
    let_go(context);
  };
  script.timer = [state](Context&, TimerId) { state->kept.clear(); };
  return script;
}

void check_random_loads(std::uint64_t seed, bool threads, std::int64_t count) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const int senders = 1 + static_cast<int>(mix64(seed) % 3);
  std::vector<std::unique_ptr<Ledger>> ledgers;
  Stage stage;
  stage.actor("root", "", root_of(senders + 1));
  for (int i = 0; i < senders; ++i) {
    ledgers.push_back(std::make_unique<Ledger>());
    const std::string name = "sender" + std::to_string(i);
    const bool own_thread = mix64(seed + 1) % 2 == 0;
    const std::uint64_t own_seed = seed * 10 + static_cast<std::uint64_t>(i);
    stage.actor(name, "root", random_sender(*ledgers.back(), own_seed, count), own_thread);
  }
  stage.actor("receiver", "root", hoarding_receiver(ledgers, seed, count), mix64(seed) % 5 == 0);
  for (int i = 0; i < senders; ++i) {
    stage.link("sender" + std::to_string(i), "receiver", kMessageCredits, Lane::kData, "out",
               kByteCredits);
  }
  const NodeEnd end = threads ? stage.run_on_threads() : stage.run_in_steps(seed);
  ASSERT_FALSE(end.error.has_value()) << end.error->message;
  for (int i = 0; i < senders; ++i) {
    const Ledger& ledger = *ledgers[static_cast<std::size_t>(i)];
    EXPECT_EQ(ledger.violations, 0);
    EXPECT_EQ(ledger.received, count);
    EXPECT_EQ(ledger.messages, 0);
    const LinkStats stats = stage.link_stats("sender" + std::to_string(i));
    EXPECT_EQ(stats.sent, count);
    EXPECT_EQ(stats.in_use_messages, 0);
    EXPECT_EQ(stats.in_use_bytes, 0);
    EXPECT_LE(stats.max_queued, kMessageCredits);
    EXPECT_GE(stats.max_queued, 1);
  }
}

TEST(Link, KeepsOrderAndCreditsUnderRandomLoadsInSteps) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) check_random_loads(seed, false, 200);
}

TEST(Link, KeepsOrderAndCreditsUnderRandomLoadsOnThreads) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) check_random_loads(seed, true, 300);
}

// With one credit between two threads the sender finds none while it is on its way back. A notice
// lost then would show as a deadlock.
TEST(Link, ReturnThatMeetsAFailingSendIsNotMissed) {
  constexpr std::int64_t kMessages = 10000;
  Script receiver;
  receiver.receive = [left = kMessages](Context& context, Message message) mutable {
    message.release_credit();
    if (--left == 0) context.finish();
  };
  Stage stage;
  stage.actor("root", "", root_of(2));
  stage.actor("sender", "root", counting_sender(kMessages), true);
  stage.actor("receiver", "root", receiver, true).link("sender", "receiver", 1);
  const NodeEnd end = stage.run_on_threads();
  EXPECT_FALSE(end.error.has_value()) << end.error->message;
}

TEST(Link, PayloadArrivesAtTheSameAddress) {
  const Buffer pixels = Buffer::zeroed(1 << 20);
  const std::byte* arrived = nullptr;
  Script sender;
  sender.start = [&](Context& context) {
    context.send("out", Message::of(Number{1}, {pixels}));
    context.finish();
  };
  Script receiver;
  receiver.receive = [&](Context& context, Message message) {
    arrived = message.payloads()[0].data();
    EXPECT_EQ(message.sender_name(), "sender");
    EXPECT_EQ(message.sender(), ActorId{1});
    EXPECT_EQ(message.port(), "in");
    context.finish();
  };
  Stage stage;
  stage.actor("root", "", root_of(2)).actor("sender", "root", sender);
  stage.actor("receiver", "root", receiver).link("sender", "receiver", 1);
  ASSERT_FALSE(stage.run_on_threads().error.has_value());
  EXPECT_EQ(arrived, pixels.data());
}

TEST(Link, KeptMessagesAreBackPressure) {
  std::vector<Message> kept;
  bool credit_came = false;
  int accepted = 0;
  Script sender;
  sender.start = [&](Context& context) {
    Message message = Message::of(Number{0});
    while (context.send("out", message)) {
      ++accepted;
      message = Message::of(Number{accepted});
    }
    EXPECT_EQ(message.as<Number>()->value, accepted) << "a refused message is as it was";
    EXPECT_FALSE(context.can_send(context.out("out"), 1));
    context.after(milliseconds(10));
  };
  sender.timer = [&](Context& context, TimerId) {
    EXPECT_FALSE(credit_came);
    context.send_control("receiver", Message::of(Number{-1}));
  };
  sender.credit_returned = [&](Context& context, std::string_view port) {
    EXPECT_EQ(port, "out");
    EXPECT_TRUE(context.can_send(context.out("out"), 1));
    credit_came = true;
    context.finish();
  };
  Script receiver;
  receiver.receive = [&](Context& context, Message message) {
    if (message.as<Number>()->value >= 0) {
      kept.push_back(std::move(message));
      return;
    }
    kept[1].release_credit();
    kept[1].release_credit();
    EXPECT_FALSE(kept[1].holds_credit());
    kept.erase(kept.begin() + 1);
    context.finish();
  };
  Stage stage;
  stage.actor("root", "", root_of(2)).actor("sender", "root", sender);
  stage.actor("receiver", "root", receiver).link("sender", "receiver", 3);
  const NodeEnd end = stage.run_in_steps(1);
  ASSERT_FALSE(end.error.has_value()) << end.error->message;
  EXPECT_EQ(accepted, 3);
  EXPECT_TRUE(credit_came);
  EXPECT_EQ(stage.link_stats("sender").in_use_messages, 2) << "released twice, returned once";
  kept.clear();
  EXPECT_EQ(stage.link_stats("sender").in_use_messages, 0);
}

TEST(Link, ASenderMayUseFewerCreditsThanThereAre) {
  Stage stage;  // its links outlive what is kept
  std::vector<Message> kept;
  int returns = 0, sent = 0;
  Script sender;
  const auto send_all = [&sent](Context& context) {
    int accepted = 0;
    for (; context.can_send(context.out("out"), 1); ++accepted) {
      EXPECT_TRUE(context.send("out", Message::of(Number{sent++})));
    }
    return accepted;
  };
  sender.start = [&](Context& context) {
    const runtime::PortId out = context.out("out");
    EXPECT_EQ(context.in_flight(out), 0);
    context.use_credits(out, 2);
    EXPECT_EQ(send_all(context), 2);
    EXPECT_EQ(context.in_flight(out), 2);
    context.use_credits(out, 3);
    EXPECT_EQ(send_all(context), 1);
    context.use_credits(out, 100);
    EXPECT_EQ(send_all(context), 1) << "no more than the link has";
    context.use_credits(out, 2);
    EXPECT_FALSE(context.send(out, Message::of(Number{sent})));
    context.after(milliseconds(10));
  };
  sender.timer = [&](Context& context, TimerId) {
    // One comes back at a time, and the third is the first that makes room.
    context.send_control("receiver", Message::of(Number{-1}));
    if (kept.size() > 1) context.after(milliseconds(10));
  };
  sender.credit_returned = [&](Context& context, std::string_view) {
    ++returns;
    EXPECT_EQ(context.in_flight(context.out("out")), 1);
    context.finish();
  };
  Script receiver;
  receiver.receive = [&](Context& context, Message message) {
    if (message.as<Number>()->value >= 0) {
      kept.push_back(std::move(message));
      return;
    }
    kept.pop_back();
    if (kept.size() == 1) context.finish();
  };
  stage.actor("root", "", root_of(2)).actor("sender", "root", sender);
  stage.actor("receiver", "root", receiver).link("sender", "receiver", 4);
  const NodeEnd end = stage.run_in_steps(1);
  ASSERT_FALSE(end.error.has_value()) << end.error->message;
  EXPECT_EQ(returns, 1);
  EXPECT_EQ(kept.size(), 1U);
  kept.clear();
}

// The receiver gives nothing back.
TEST(Link, MoreCreditsToUseAreToldAsThoseThatReturn) {
  Stage stage;
  std::vector<Message> kept;
  int returns = 0;
  Script sender;
  sender.start = [&](Context& context) {
    const runtime::PortId out = context.out("out");
    context.use_credits(out, 1);
    EXPECT_TRUE(context.send(out, Message::of(Number{0})));
    context.use_credits(out, 2);  // nothing waits
    EXPECT_TRUE(context.send(out, Message::of(Number{1})));
    EXPECT_FALSE(context.send(out, Message::of(Number{2})));
    EXPECT_EQ(stage.link_stats("sender").plan.message_credits, 2);
    context.after(milliseconds(10));
  };
  sender.timer = [&](Context& context, TimerId) {
    EXPECT_EQ(returns, 0);
    context.use_credits(context.out("out"), 3);
  };
  sender.credit_returned = [&](Context& context, std::string_view) {
    ++returns;
    EXPECT_TRUE(context.send("out", Message::of(Number{2})));
    context.finish();
  };
  Script receiver;
  receiver.receive = [&](Context& context, Message message) {
    kept.push_back(std::move(message));
    if (kept.size() == 3) context.finish();
  };
  stage.actor("root", "", root_of(2)).actor("sender", "root", sender);
  stage.actor("receiver", "root", receiver).link("sender", "receiver", 4);
  const NodeEnd end = stage.run_in_steps(1);
  ASSERT_FALSE(end.error.has_value()) << end.error->message;
  EXPECT_EQ(returns, 1);
  kept.clear();
}

TEST(Link, ForwardedMessageReturnsItsOldCredit) {
  Script relay;
  relay.receive = [](Context& context, Message message) {
    ASSERT_TRUE(context.send("out", message));
    EXPECT_TRUE(message.empty());
  };
  int received = 0;
  Script receiver;
  receiver.receive = [&](Context& context, Message message) {
    EXPECT_EQ(message.as<Number>()->value, received++);
    EXPECT_EQ(message.sender_name(), "relay");
    if (received == 20) context.finish();
  };
  Stage stage;
  stage.actor("root", "", root_of(2)).actor("sender", "root", counting_sender(20));
  stage.actor("relay", "root", relay).actor("receiver", "root", receiver);
  stage.link("sender", "relay", 2).link("relay", "receiver", 30);
  ASSERT_FALSE(stage.run_on_threads().error.has_value());
  EXPECT_EQ(received, 20);
  EXPECT_EQ(stage.link_stats("sender").in_use_messages, 0);
}

TEST(Link, ActorMaySendAMessageRoundToItselfWithOneCredit) {
  int turns = 0;
  Script script;
  script.start = [](Context& context) { context.send("out", Message::of(Number{0})); };
  script.receive = [&](Context& context, Message message) {
    ASSERT_TRUE(context.send("out", message));
    if (++turns == 5) context.finish();
  };
  Stage stage;
  stage.actor("root", "", script).link("root", "root", 1);
  ASSERT_FALSE(stage.run_in_steps(3).error.has_value());
  EXPECT_EQ(turns, 5);
}

TEST(Link, MetricsAreDroppedAndCountedWhenCreditRunsOut) {
  Script sender;
  sender.start = [](Context& context) {
    for (int i = 0; i < 10; ++i) {
      Message message = Message::of(Number{i});
      EXPECT_TRUE(context.send("out", message));
      EXPECT_TRUE(message.empty());
    }
    context.finish();
  };
  std::vector<std::int64_t> seen;
  Script monitor;
  monitor.receive = [&](Context& context, Message message) {
    seen.push_back(message.as<Number>()->value);
    if (seen.size() == 3) context.finish();
  };
  Stage stage;
  stage.actor("root", "", root_of(2)).actor("sender", "root", sender);
  stage.actor("monitor", "root", monitor).link("sender", "monitor", 3, Lane::kMetrics);
  ASSERT_FALSE(stage.run_in_steps(1).error.has_value());
  EXPECT_THAT(seen, ::testing::ElementsAre(0, 1, 2));
  const LinkStats stats = stage.link_stats("sender");
  EXPECT_EQ(stats.sent, 3);
  EXPECT_EQ(stats.dropped, 7);
  EXPECT_EQ(stats.undelivered, 0);
}

TEST(LinkDeathTest, SendingToAnUnwiredPortIsABrokenInvariant) {
  Script script;
  script.start = [](Context& context) {
    EXPECT_FALSE(context.out("nowhere").valid());
    context.send("nowhere", Message::of(Number{1}));
  };
  Stage stage;
  stage.actor("root", "", script);
  EXPECT_DEATH((void)stage.run_in_steps(1), "does not wire, by root");
}

}  // namespace
}  // namespace troupe::runtime
