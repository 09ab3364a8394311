// A peer that gives back messages it never got: what a node has sent, and only that, can come back,
// and only once.

#include <gmock/gmock.h>

#include <optional>

#include "tests/runtime/gates.h"

namespace troupe::runtime {
namespace {

using sim::World;
using testing::HasSubstr;
using namespace std::chrono_literals;

// Is node "b" as far as node "a" can tell, and answers the first message of an actor with what a
// test wants.
class Forger final : public WireEvents {
 public:
  Forger(World& world, std::vector<Packet> words)
      : world_(world), wire_(world.network().add("sim://forger")), words_(std::move(words)) {
    (void)wire_.dial("sim://0");
    for (TimePoint at = 0s; at <= 10s; at += 10ms) {
      world_.at(at, [this] { wire_.poll(*this, TimePoint(0)); });
    }
    for (TimePoint at = 100ms; at <= 10s; at += 500ms) {
      world_.at(at, [this] {
        if (connection_) wire_.send(*connection_, Lane::kControl, pack(Heartbeat{}));
      });
    }
  }
  void connected(ConnectionId connection, const ConnectionInfo&) override {
    Hello hello;
    hello.node = "b";
    hello.incarnation = 5;
    wire_.send(connection, Lane::kControl, pack(hello));
    connection_ = connection;
  }
  void arrived(ConnectionId connection, Lane, Packet packet) override {
    const auto read = unpack(packet, number_types());
    if (!read.ok() || !std::holds_alternative<Envelope>(*read)) return;
    for (const Packet& word : std::exchange(words_, {})) {
      wire_.send(connection, Lane::kControl, word);
    }
  }
  void disconnected(ConnectionId, const Error&) override { connection_.reset(); }

 private:
  World& world_;
  sim::SimWire& wire_;
  std::vector<Packet> words_;
  std::optional<ConnectionId> connection_;
};

// One that comes back along a link, or past all of them; `sequence` is the forger's first but one.
Envelope returned(std::uint64_t sequence, std::optional<std::uint32_t> link) {
  Envelope envelope;
  envelope.sequence = sequence;
  envelope.link = link;
  if (!link) envelope.target = "sender";
  envelope.cause = Error{ErrorKind::kInternal, "forged"};
  envelope.received = {0, 1, 0};
  envelope.message = Message::of(Number{7});
  return envelope;
}

Packet word(const Envelope& envelope) { return pack(envelope, number_types()); }

class ForgedReturn : public Gates {
 protected:
  // A sender with two credits on "a" has sent one message along link 0 when these are said to it.
  std::string end_after(std::vector<Packet> words) {
    actor("a", "root.a", root("a", 1));
    Script sender;
    sender.start = [](Context& context) { (void)context.after(500ms); };
    sender.timer = [](Context& context, TimerId) { context.send("out", Message::of(Number{7})); };
    sender.undeliverable = [this](Context&, Message, const Error& cause) {
      if (cause.message == "forged") ++back_;
    };
    actor("a", "sender", sender);
    actor("b", "root.b", {});
    actor("b", "receiver", {});
    link("sender", "receiver", 2);
    link("receiver", "sender", 2);
    plan_.links[1].tokens = 1;
    add("a");
    const Forger forger(*world_, std::move(words));
    world_->at(5s, [&] {
      if (!world_->end(0)) in_use_ = stats_of(0, "sender").in_use_messages;
      world_->node(0).request_stop();
    });
    EXPECT_TRUE(world_->run(60s));
    return error_of(0);
  }

  int back_ = 0;  // messages that the sender was given back by the forger
  std::optional<std::int64_t> in_use_;
};

TEST_F(ForgedReturn, MessageThatWasSentComesBackWithItsCredit) {
  EXPECT_EQ(end_after({word(returned(1, 0))}), "");
  EXPECT_EQ(back_, 1);
  EXPECT_EQ(in_use_, 0);
}

TEST_F(ForgedReturn, MessageThatComesBackTwiceCostsThePeerItsPlace) {
  EXPECT_THAT(end_after({word(returned(1, 0)), word(returned(2, 0))}),
              HasSubstr("b is lost: it returned a message that was never sent"));
  EXPECT_EQ(back_, 1);
}

TEST_F(ForgedReturn, MessageOfMoreBytesThanAreInUseCostsThePeerItsPlace) {
  Envelope envelope = returned(1, 0);
  envelope.message = Message::of(Number{7}, {Buffer::zeroed(4096)});
  EXPECT_THAT(end_after({word(envelope)}), HasSubstr("that was never sent"));
  EXPECT_EQ(back_, 0);
}

TEST_F(ForgedReturn, LinkThatLeadsTheOtherWayCostsThePeerItsPlace) {
  EXPECT_THAT(end_after({word(returned(1, 1))}), HasSubstr("that was never sent"));
  EXPECT_EQ(back_, 0);
}

TEST_F(ForgedReturn, LinkThatIsNotInThePlanCostsThePeerItsPlace) {
  EXPECT_THAT(end_after({word(returned(1, 99))}), HasSubstr("that was never sent"));
}

TEST_F(ForgedReturn, MoreThanWasSentCostsThePeerItsPlace) {
  Envelope envelope = returned(1, 0);
  envelope.received = {0, 2, 0};
  EXPECT_THAT(end_after({word(envelope)}), HasSubstr("that was never sent"));
  EXPECT_EQ(back_, 0);
}

TEST_F(ForgedReturn, SenderThatIsNotHereCostsThePeerItsPlace) {
  Envelope envelope = returned(1, std::nullopt);
  envelope.target = "receiver";
  EXPECT_THAT(end_after({word(envelope)}), HasSubstr("that was never sent"));
}

}  // namespace
}  // namespace troupe::runtime
