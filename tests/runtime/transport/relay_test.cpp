// Wires of processes that nobody can dial, and the relay that passes on what they say; and what
// becomes of unknown peers.

#include "runtime/relay/relay.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "runtime/relay/relay_client.h"
#include "runtime/relay/relay_frames.h"
#include "runtime/transport/keys.h"
#include "tests/runtime/transport/wire_stage.h"

namespace troupe::runtime {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// A process that nobody can dial.
struct Outbound {
  Outbound(std::uint16_t port, std::uint32_t client, const RelayToken& token,
           std::function<std::vector<AllowedKey>()> allowed)
      : listener(fresh_ipc_address()), folder(listener.substr(6) + "-doors") {
    std::filesystem::create_directory(folder);
    ZmqWireOptions options;
    options.clock = &stage_clock();
    options.keys = keys;
    options.listen = listener;
    options.allowed_now = std::move(allowed);
    // Two processes of one test see the same memory, and those of two machines do not.
    options.shared_memory = false;
    RelayClientOptions way;
    way.host = "127.0.0.1";
    way.port = port;
    way.client = client;
    way.token = token;
    way.listener = listener.substr(6);
    way.folder = folder;
    wire = std::make_unique<RelayedWire>(ZmqWire::open(options).value(),
                                         RelayClient::open(way).value(), client);
  }
  ~Outbound() {
    wire.reset();
    std::filesystem::remove_all(folder);
  }
  ConnectionId dial(const Outbound& other) const {
    return wire->dial(other.wire->address() + "#" + other.keys.public_key).value();
  }

  const KeyPair keys = make_keys().value();
  const std::string listener, folder;
  std::unique_ptr<RelayedWire> wire;
  WireDiary diary;
};

bool play_both(Outbound& one, Outbound& other, const std::function<bool()>& condition) {
  const TimePoint deadline = stage_clock().now() + std::chrono::minutes(1);
  while (!condition()) {
    if (stage_clock().now() > deadline) return false;
    for (Outbound* each : {&one, &other}) {
      each->wire->poll(each->diary, stage_clock().now() + std::chrono::milliseconds(1));
    }
  }
  return true;
}

class RelayTest : public testing::Test {
 protected:
  RelayTest() { open(); }
  void open(std::uint16_t port = 0) {
    options_.host = "127.0.0.1";
    options_.port = port;
    auto opened = Relay::open(options_);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    relay_ = std::move(*opened);
    for (std::uint32_t i = 0; i < 2; ++i) relay_->admit(i, tokens_[i]);
  }
  std::unique_ptr<Outbound> outbound(std::uint32_t client) {
    return std::make_unique<Outbound>(relay_->port(), client, tokens_[client],
                                      [this] { return allowed_; });
  }
  void let_in(const std::unique_ptr<Outbound>& who) {
    allowed_.push_back({who->keys.public_key, "a friend"});
  }
  // A connection to the relay, with something said over it.
  int unknown(std::span<const std::byte> said) const {
    const int number = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(relay_->port());
    EXPECT_EQ(::connect(number, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::send(number, said.data(), said.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(said.size()));
    return number;
  }
  // What comes until the end, which comes.
  static std::size_t heard_until_end(int number) {
    std::size_t heard = 0;
    std::byte bytes[256];
    for (ssize_t got = 0; (got = ::recv(number, bytes, sizeof bytes, 0)) > 0;) {
      heard += static_cast<std::size_t>(got);
    }
    ::close(number);
    return heard;
  }

  RelayOptions options_;
  std::unique_ptr<Relay> relay_;
  const std::vector<RelayToken> tokens_{draw_relay_token(), draw_relay_token()};
  std::vector<AllowedKey> allowed_;
};

TEST_F(RelayTest, TwoThatNobodyCanDialTalkThroughIt) {
  const auto one = outbound(0), other = outbound(1);
  let_in(one);
  EXPECT_EQ(other->wire->address(), "relay://1");
  const ConnectionId there = one->dial(*other);
  ASSERT_TRUE(play_both(
      *one, *other, [&] { return one->diary.open.size() == 1 && other->diary.open.size() == 1; }));
  const ConnectionId back = other->diary.open.front();
  EXPECT_EQ(other->diary.infos.at(back).key, one->keys.public_key);
  const std::vector<std::size_t> sizes{3, 100'000, std::size_t{5} << 20};
  for (const Lane lane : {Lane::kControl, Lane::kData, Lane::kMetrics}) {
    one->wire->send(there, lane, packet_of(7, sizes));
    other->wire->send(back, lane, packet_of(8, sizes));
  }
  ASSERT_TRUE(play_both(*one, *other, [&] {
    return one->diary.packets.size() == 3 && other->diary.packets.size() == 3;
  }));
  for (const ArrivedPacket& arrived : other->diary.packets) {
    EXPECT_TRUE(is_packet(arrived.packet, 7, sizes));
  }
  for (const ArrivedPacket& arrived : one->diary.packets) {
    EXPECT_TRUE(is_packet(arrived.packet, 8, sizes));
  }
  one->wire->close(there);
  EXPECT_TRUE(play_both(*one, *other, [&] { return other->diary.ends.contains(back); }));
}

TEST_F(RelayTest, WhoeverIsNotLetInIsRefusedAtTheOtherEndAndNotByTheRelay) {
  const auto one = outbound(0), other = outbound(1);
  const ConnectionId there = one->dial(*other);
  ASSERT_TRUE(play_both(*one, *other, [&] { return one->diary.ends.contains(there); }));
  EXPECT_THAT(one->diary.ends.at(there), HasSubstr("key"));
}

// Not even while handshakes fail: a door does not hang up.
TEST_F(RelayTest, OneThatComesLateIsStillReached) {
  const auto one = outbound(0);
  let_in(one);
  const RelayToken token = tokens_[1];
  relay_->admit(1, draw_relay_token());
  const auto other = outbound(1);
  one->dial(*other);
  const TimePoint late = stage_clock().now() + std::chrono::seconds(1);
  ASSERT_TRUE(play_both(*one, *other, [&] { return stage_clock().now() > late; }));
  EXPECT_THAT(other->diary.open, SizeIs(0));
  relay_->admit(1, token);
  EXPECT_TRUE(play_both(*one, *other, [&] { return other->diary.open.size() == 1; }));
}

TEST_F(RelayTest, ARelayThatComesBackIsFoundAgain) {
  const auto one = outbound(0), other = outbound(1);
  let_in(one);
  const ConnectionId there = one->dial(*other);
  const auto open_both = [&](std::size_t times) {
    return play_both(*one, *other, [&] {
      return one->diary.open.size() == times && other->diary.open.size() == times;
    });
  };
  ASSERT_TRUE(open_both(1));
  const std::uint16_t port = relay_->port();
  relay_.reset();
  ASSERT_TRUE(play_both(*one, *other, [&] {
    return one->diary.ends.contains(there) && other->diary.ends.size() == 1;
  }));
  open(port);
  one->dial(*other);
  EXPECT_TRUE(open_both(2));
}

TEST_F(RelayTest, AClientAttendsWhenItIsKnownAndNotBefore) {
  RelayClientOptions way;
  way.host = "127.0.0.1";
  way.port = relay_->port();
  way.client = 5;
  way.token = draw_relay_token();
  const auto client = RelayClient::open(way).value();
  EXPECT_FALSE(client->attends(std::chrono::milliseconds(300)));
  relay_->admit(5, way.token);
  EXPECT_TRUE(client->attends(std::chrono::minutes(1)));
}

TEST_F(RelayTest, UnknownPeersAreCutOffWithoutAWord) {
  const RelayFrameBytes nothing{};
  EXPECT_EQ(heard_until_end(unknown(nothing)), 0U);
  for (const auto kind : {RelayFrame::Kind::kAttend, RelayFrame::Kind::kCall,
                          RelayFrame::Kind::kTake, RelayFrame::Kind::kRing}) {
    RelayFrame frame;
    frame.kind = kind;
    frame.client = 1;
    frame.other = 0;
    frame.token = tokens_[0];  // another one's
    EXPECT_EQ(heard_until_end(unknown(write_relay_frame(frame))), 0U);
    frame.client = 9;  // nobody
    EXPECT_EQ(heard_until_end(unknown(write_relay_frame(frame))), 0U);
  }
}

TEST_F(RelayTest, AClientCannotTakeWhatIsNotItsOwnAndCallNobodyWhoIsNotThere) {
  RelayFrame frame;
  frame.client = 1;
  frame.token = tokens_[1];
  for (const auto kind : {RelayFrame::Kind::kTake, RelayFrame::Kind::kRing, RelayFrame::Kind::kOpen,
                          RelayFrame::Kind::kSign}) {
    frame.kind = kind;
    frame.call = 1;
    EXPECT_EQ(heard_until_end(unknown(write_relay_frame(frame))), 0U);
  }
  frame.kind = RelayFrame::Kind::kCall;
  for (const std::uint32_t other : {0U, 1U, 77U}) {  // none attends
    frame.other = other;
    EXPECT_EQ(heard_until_end(unknown(write_relay_frame(frame))), 0U);
  }
}

TEST_F(RelayTest, WhoeverAttendsAndThenSaysWhatItLikesIsCutOff) {
  RelayFrame frame;
  frame.kind = RelayFrame::Kind::kAttend;
  frame.client = 1;
  frame.token = tokens_[1];
  const RelayFrameBytes attend = write_relay_frame(frame);
  std::vector<std::byte> said(attend.begin(), attend.end());
  said.resize(said.size() + kRelayFrameBytes, std::byte{'x'});
  EXPECT_EQ(heard_until_end(unknown(said)), kRelayFrameBytes) << "one sign of life";
}

TEST_F(RelayTest, TheOldestOfTooManyUnknownPeersMakesRoom) {
  relay_.reset();
  options_.most_unidentified = 2;
  open();
  std::vector<int> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(unknown({}));
  EXPECT_EQ(heard_until_end(silent.front()), 0U);
  ::close(silent[1]);
  ::close(silent[2]);
}

TEST_F(RelayTest, AnUnknownPeerThatSaysNothingIsCutOffInTime) {
  relay_.reset();
  options_.answer_within = std::chrono::milliseconds(50);
  open();
  EXPECT_EQ(heard_until_end(unknown({})), 0U);
}

TEST_F(RelayTest, NobodyMayCallMoreOftenThanIsAllowed) {
  relay_.reset();
  options_.most_calls = 2;
  options_.answer_within = std::chrono::minutes(5);
  open();
  RelayFrame frame;
  frame.kind = RelayFrame::Kind::kAttend;
  frame.client = 1;
  frame.token = tokens_[1];
  const int attending = unknown(write_relay_frame(frame));
  std::byte sign[kRelayFrameBytes];
  ASSERT_EQ(::recv(attending, sign, sizeof sign, MSG_WAITALL), ssize_t{kRelayFrameBytes});
  frame.kind = RelayFrame::Kind::kCall;
  frame.client = 0;
  frame.other = 1;
  frame.token = tokens_[0];
  std::vector<int> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.push_back(unknown(write_relay_frame(frame)));
    ASSERT_EQ(::recv(attending, sign, sizeof sign, MSG_WAITALL), ssize_t{kRelayFrameBytes});
  }
  EXPECT_EQ(heard_until_end(unknown(write_relay_frame(frame))), 0U);
  for (const int number : waiting) ::close(number);
  ::close(attending);
}

TEST(Relay, WhereItCannotListenItSaysSo) {
  RelayOptions options;
  options.host = "no number";
  EXPECT_THAT(Relay::open(options).error().message, HasSubstr("no number"));
  options.host = "127.0.0.1";
  const auto first = Relay::open(options);
  ASSERT_TRUE(first.ok());
  options.port = (*first)->port();
  EXPECT_THAT(Relay::open(options).error().message, HasSubstr("in use"));
}

}  // namespace
}  // namespace troupe::runtime
