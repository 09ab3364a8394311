// Data over UCX where something is wrong: the peer, its address, its messages, its network.

#include "runtime/transport/ucx_fabric.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/transport/zmq_frames.h"
#include "runtime/transport/zmq_traffic.h"
#include "tests/runtime/transport/wire_stage.h"

namespace troupe::runtime {
namespace {

using testing::HasSubstr;

ZmqWireOptions over_ucx(const std::string& listen = "") {
  ZmqWireOptions options = plain(listen);
  options.ucx = open_ucx("tcp");
  return options;
}

// Two wires that have met, of which any may have UCX.
struct Pair {
  Pair(const ZmqWireOptions& listening, const ZmqWireOptions& dialing)
      : listener(listening), dialer(dialing) {
    at_dialer = dialer.dial(listener.wire->address());
    met =
        runtime::play({&listener, &dialer}, [&] { return dialer.diary.infos.contains(at_dialer); });
    at_listener = listener.diary.open.at(0);
  }
  bool play(const std::function<bool()>& condition) {
    return runtime::play({&listener, &dialer}, condition);
  }
  bool ended() const { return !listener.diary.ends.empty() && !dialer.diary.ends.empty(); }

  StageEnd listener, dialer;
  ConnectionId at_listener, at_dialer;
  bool met = false;
};

TEST(UcxFabric, OneThatIsNotOpenOffersNothing) {
  UcxFabric fabric(stage_clock());
  EXPECT_FALSE(fabric.is_open());
  EXPECT_TRUE(fabric.offer().address.empty());
  EXPECT_EQ(fabric.before_wait().descriptor, -1);
  fabric.progress();
  fabric.drain();
}

TEST(UcxFabric, SignalsStayAsTheyWereBeforeTheLibraryCame) {
  struct sigaction before {
  }, after{};
  before.sa_handler = SIG_IGN;  // as nohup has it
  struct sigaction own {};
  ::sigaction(SIGHUP, &before, &own);
  ASSERT_TRUE(open_ucx("tcp")->is_open());
  ::sigaction(SIGHUP, &own, &after);
  EXPECT_EQ(after.sa_handler, SIG_IGN);
}

TEST(UcxFabric, TransportThatIsNotThereIsRefusedByName) {
  ::setenv("UCX_TLS", "no_such_transport", 1);
  UcxFabric fabric(stage_clock());
  const auto opened = fabric.open({});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(opened.error().message, HasSubstr("UCX_TLS"));
}

TEST(UcxFabric, PeerWithoutUcxThatSendsDataIsToldWhatToChange) {
  Pair pair(over_ucx(fresh_ipc_address()), plain());
  ASSERT_TRUE(pair.met);
  pair.dialer.wire->send(pair.at_dialer, Lane::kControl, packet_of(1, {100}));
  ASSERT_TRUE(pair.play([&] { return pair.listener.diary.packets.size() == 1; }));
  pair.dialer.wire->send(pair.at_dialer, Lane::kData, packet_of(2, {100}));
  ASSERT_TRUE(pair.play([&] { return pair.ended(); }));
  EXPECT_THAT(pair.listener.diary.ends[pair.at_listener], HasSubstr("data over ZeroMQ"));
  EXPECT_THAT(pair.dialer.diary.ends[pair.at_dialer], HasSubstr("cluster.fabric"));
  EXPECT_EQ(pair.listener.diary.packets.size(), 1u);
}

TEST(UcxFabric, DataForAPeerWithoutUcxEndTheConnection) {
  for (const bool ucx_dials : {false, true}) {
    const std::string address = fresh_ipc_address();
    Pair pair(ucx_dials ? plain(address) : over_ucx(address), ucx_dials ? over_ucx() : plain());
    ASSERT_TRUE(pair.met);
    StageEnd& end = ucx_dials ? pair.dialer : pair.listener;
    end.wire->send(ucx_dials ? pair.at_dialer : pair.at_listener, Lane::kData, packet_of(1, {9}));
    ASSERT_TRUE(pair.play([&] { return pair.ended(); }));
    EXPECT_THAT(end.diary.ends.begin()->second, HasSubstr("cluster.fabric"));
    EXPECT_THAT((ucx_dials ? pair.listener : pair.dialer).diary.ends.begin()->second,
                HasSubstr("cluster.fabric"));
  }
}

// The payload is far too large to be on its way as a whole: the killed process has to hand it out.
// Shared memory has that as posix alone: cma copies from the other process without its doing.
TEST(UcxFabric, PeerThatDiesWhileItsPayloadIsFetchedEndsTheConnection) {
  for (const char* transports : {"tcp", "posix"}) {
    const std::string address = fresh_ipc_address();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ZmqWireOptions options = plain();
      options.ucx = open_ucx(transports);
      StageEnd end(options);
      const ConnectionId id = end.dial(address);
      while (!end.diary.infos.contains(id)) {
        end.wire->poll(end.diary, stage_clock().now() + std::chrono::milliseconds(1));
      }
      end.wire->send(id, Lane::kData, packet_of(1, {10}));
      end.wire->send(id, Lane::kData, packet_of(2, {std::size_t{256} << 20}));
      // Until the announcement has left.
      while (end.diary.packets.empty()) {
        end.wire->poll(end.diary, stage_clock().now() + std::chrono::milliseconds(1));
      }
      for (;;) ::pause();
    }
    ZmqWireOptions options = plain(address);
    options.ucx = open_ucx(transports);
    StageEnd here(options);
    ASSERT_TRUE(play({&here}, [&] { return here.diary.packets.size() == 1; })) << transports;
    here.wire->send(here.diary.open[0], Lane::kControl, packet_of(3, {}));
    for (int i = 0; i < 20; ++i) {
      here.wire->poll(here.diary, stage_clock().now() + std::chrono::milliseconds(1));
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ASSERT_TRUE(play({&here}, [&] { return here.diary.ends.size() == 1; })) << transports;
    EXPECT_THAT(here.diary.ends.begin()->second, HasSubstr("lost"));
  }
}

// One end of a connection, and another process that knows its token and says what it likes.
class UcxTraffic : public testing::Test {
 protected:
  void SetUp() override {
    options_ = over_ucx();
    token_ = random_token();
    traffic_.emplace(options_, sink_, token_, false);
    other_ = open_ucx("tcp");
    stream_ = other_->stream(token_, true, memory_);
    ASSERT_TRUE(stream_->connect(options_.ucx->offer()).ok());
    ASSERT_EQ(traffic_->open_ucx(other_->offer(), "127.0.0.1", true), "");
  }
  // Why it has ended; "": it has not within many looks.
  std::string end_of_it() {
    for (int i = 0; i < 20'000; ++i) {
      other_->progress();
      options_.ucx->progress();
      const auto ended = traffic_->take_ucx({1}, stage_clock().now());
      if (ended) return ended->why;
    }
    return "";
  }
  void send(const std::vector<Buffer>& frames) { stream_->send(frames); }
  static Buffer announced(std::uint64_t bytes) {
    PayloadEntry entry;
    entry.bytes = bytes;
    entry.how = PayloadEntry::How::kChunks;
    return write_packet(Lane::kData, std::vector{entry}, {});
  }

  ZmqWireOptions options_;
  ZmqSink sink_;
  RecycledMemory memory_;
  Token token_{};
  std::optional<ZmqTraffic> traffic_;
  std::shared_ptr<UcxFabric> other_;
  std::unique_ptr<UcxStream> stream_;
};

TEST_F(UcxTraffic, PayloadOfAnotherSizeThanAnnouncedIsRefused) {
  for (const std::size_t bytes : {std::size_t{3}, std::size_t{50'000}, std::size_t{9'000'000}}) {
    send({announced(bytes + 1)});
    send({write_bare(FrameKind::kChunk, Lane::kData), pattern(bytes, 1)});
    EXPECT_THAT(end_of_it(), HasSubstr("a chunk of another size")) << bytes;
    traffic_.reset();
    stream_.reset();
    SetUp();
  }
}

TEST_F(UcxTraffic, ControlOverUcxIsRefused) {
  send({write_packet(Lane::kControl, {}, {})});
  EXPECT_THAT(end_of_it(), HasSubstr("a message of another lane"));
}

TEST_F(UcxTraffic, MessageThatIsNoneIsRefused) {
  send({pattern(100, 1), pattern(5000, 2)});
  EXPECT_THAT(end_of_it(), HasSubstr("a message of another kind"));
}

TEST_F(UcxTraffic, TheSameMessageTwiceIsRefused) {
  send({announced(8)});
  const auto third = open_ucx("tcp");
  const auto echo = third->stream(token_, true, memory_);
  ASSERT_TRUE(echo->connect(options_.ucx->offer()).ok());
  const Buffer again[] = {announced(8)};
  echo->send(again);
  std::string why;
  for (int i = 0; i < 100 && why.empty(); ++i) {
    third->progress();
    why = end_of_it();
  }
  EXPECT_THAT(why, HasSubstr("twice"));
}

TEST_F(UcxTraffic, StrangerIsNotHeard) {
  const auto stranger = other_->stream(random_token(), true, memory_);
  ASSERT_TRUE(stranger->connect(options_.ucx->offer()).ok());
  const Buffer small[] = {pattern(100, 1)};
  const Buffer large[] = {pattern(20, 1), pattern(5'000'000, 2)};
  stranger->send(small);
  stranger->send(large);
  EXPECT_EQ(end_of_it(), "");
  EXPECT_FALSE(sink_.has_news());
}

TEST_F(UcxTraffic, AddressThatIsDamagedIsRefused) {
  const UcxOffer sound = other_->offer();
  ZmqTraffic traffic(options_, sink_, random_token(), false);
  for (std::size_t i = 0; i < sound.address.size(); ++i) {
    UcxOffer damaged = sound;
    damaged.address[i] = static_cast<char>(damaged.address[i] ^ (1 << i % 8));
    EXPECT_THAT(traffic.open_ucx(damaged, "127.0.0.1", true), HasSubstr("damaged")) << i;
    damaged.address.resize(i);
    const std::string shorter = traffic.open_ucx(damaged, "127.0.0.1", true);
    EXPECT_EQ(shorter.empty(), i == 0) << "no address is no offer, and half of one is damaged";
  }
}

TEST_F(UcxTraffic, OtherReleaseOfUcxIsRefused) {
  UcxOffer other = other_->offer();
  other.version = "1.99";
  ZmqTraffic traffic(options_, sink_, random_token(), false);
  EXPECT_THAT(traffic.open_ucx(other, "127.0.0.1", true), HasSubstr("1.99"));
}

TEST_F(UcxTraffic, PeerBeyondTheNetworkIsRefusedAndOneWithinIsNot) {
  const auto network = NetworkRange::parse("10.1.0.0/16");
  ZmqWireOptions options = plain();
  options.ucx = std::make_shared<UcxFabric>(stage_clock());
  ASSERT_TRUE(options.ucx->open(*network).ok());
  ZmqTraffic traffic(options, sink_, random_token(), false);
  EXPECT_THAT(traffic.open_ucx(other_->offer(), "10.2.0.1", false),
              HasSubstr("not encrypted, and 10.2.0.1 is not of the network"));
  EXPECT_EQ(traffic.open_ucx(other_->offer(), "10.1.0.1", false), "");
  ZmqTraffic here_alone(options_, sink_, random_token(), false);
  EXPECT_THAT(here_alone.open_ucx(other_->offer(), "10.1.0.1", false), HasSubstr("10.1.0.1"));
}

}  // namespace
}  // namespace troupe::runtime
