// A listener that breaks the protocol once the connection is open: both ends learn why it is over.

#include <zmq.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "runtime/transport/zmq_frames.h"
#include "runtime/transport/zmq_wire.h"
#include "tests/runtime/transport/wire_stage.h"

namespace troupe::runtime {
namespace {

using testing::HasSubstr;

// A listener made by hand, and the wire that dials it.
class BadListener : public testing::Test {
 protected:
  void SetUp() override {
    const std::array<const char*, kLanes> suffixes = {"", ".data", ".metrics"};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      routers_[lane] = zmq::socket_t(context_, ZMQ_ROUTER);
      routers_[lane].set(zmq::sockopt::linger, 0);
      routers_[lane].bind(address_ + suffixes[lane]);
    }
    id_ = dialer_.dial(address_);
    EXPECT_EQ(said(Lane::kControl), FrameKind::kAttach);
    WireWelcome welcome;
    welcome.chunk_bytes = kLeastChunkBytes;
    say(Lane::kControl, write_welcome(welcome));
    EXPECT_EQ(said(Lane::kData), FrameKind::kAttach);
    EXPECT_EQ(said(Lane::kMetrics), FrameKind::kAttach);
    EXPECT_EQ(said(Lane::kControl), FrameKind::kReady);
    say(Lane::kControl, write_bare(FrameKind::kOpen));
    ASSERT_TRUE(play({&dialer_}, [&] { return !dialer_.diary.open.empty(); }));
  }
  zmq::socket_t& router(Lane lane) { return routers_[static_cast<std::size_t>(lane)]; }
  // The kind of the dialer's next message.
  std::optional<FrameKind> said(Lane lane) {
    zmq::message_t route;
    EXPECT_TRUE(play({&dialer_}, [&] {
      return router(lane).recv(route, zmq::recv_flags::dontwait).has_value();
    }));
    routes_[static_cast<std::size_t>(lane)] = route.to_string();
    zmq::message_t frame;
    EXPECT_TRUE(router(lane).recv(frame).has_value());
    last_ = Buffer::copy_of({frame.data<std::byte>(), frame.size()});
    return kind_of(last_.bytes());
  }
  void begin(Lane lane) {
    router(lane).send(zmq::buffer(routes_[static_cast<std::size_t>(lane)]),
                      zmq::send_flags::sndmore);
  }
  void say(Lane lane, const Buffer& frame) {
    begin(lane);
    router(lane).send(zmq::const_buffer(frame.data(), frame.size()));
  }

  const std::string address_ = fresh_ipc_address();
  zmq::context_t context_;
  std::array<zmq::socket_t, kLanes> routers_;
  std::array<std::string, kLanes> routes_;
  ZmqWireOptions options_ = [] {
    ZmqWireOptions options;
    options.clock = &stage_clock();
    options.data_stripes = 1;
    return options;
  }();
  StageEnd dialer_{options_};
  ConnectionId id_;
  Buffer last_;
};

TEST_F(BadListener, AMessageOfTooManyFramesEndsTheConnectionWithItsReasonAtBothEnds) {
  begin(Lane::kData);
  for (int i = 0; i < 2000; ++i) {
    router(Lane::kData)
        .send(zmq::const_buffer("x", 1),
              i + 1 < 2000 ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }
  ASSERT_TRUE(play({&dialer_}, [&] { return dialer_.diary.ends.contains(id_); }));
  EXPECT_EQ(dialer_.diary.ends[id_], "the other end sent a message of too many frames");
  EXPECT_EQ(said(Lane::kControl), FrameKind::kRefuse);
  EXPECT_EQ(read_refuse(last_.bytes()), "this end sent a message of too many frames");
  EXPECT_EQ(dialer_.wire->counters().dropped, 1U);
}

TEST_F(BadListener, MayBeClosedAndDialedAgainAtOnce) {
  say(Lane::kMetrics, pattern(100, 1));
  ASSERT_TRUE(play({&dialer_}, [&] { return dialer_.diary.ends.contains(id_); }));
  dialer_.wire->close(id_);
  const ConnectionId again = dialer_.dial(address_);
  EXPECT_NE(again, id_);
  // What was said of the first one stands before it.
  auto kind = said(Lane::kControl);
  while (kind == FrameKind::kRefuse || kind == FrameKind::kBye) kind = said(Lane::kControl);
  EXPECT_EQ(kind, FrameKind::kAttach);
}

// The listener's side of it: what a dialer says instead of a goodbye.
TEST(ZmqAccusation, AListenerHearsWhatItIsToldAndEndsTheConnection) {
  ZmqWireOptions options;
  options.clock = &stage_clock();
  options.listen = fresh_ipc_address();
  options.data_stripes = 1;
  StageEnd listener(options);
  zmq::context_t context;
  const Token token = random_token();
  const auto strand = [&](Lane lane, const std::string& address) {
    zmq::socket_t socket(context, ZMQ_DEALER);
    socket.set(zmq::sockopt::linger, 0);
    const StrandName name{token, lane, 0};
    socket.set(zmq::sockopt::routing_id, name.route());
    socket.connect(address);
    Attach attach;
    attach.strand = name;
    attach.chunk_bytes = kLeastChunkBytes;
    const Buffer frame = write_attach(attach);
    socket.send(zmq::const_buffer(frame.data(), frame.size()));
    return socket;
  };
  zmq::socket_t control = strand(Lane::kControl, options.listen);
  zmq::message_t welcome;
  ASSERT_TRUE(play({&listener},
                   [&] { return control.recv(welcome, zmq::recv_flags::dontwait).has_value(); }));
  zmq::socket_t data = strand(Lane::kData, options.listen + ".data");
  zmq::socket_t metrics = strand(Lane::kMetrics, options.listen + ".metrics");
  for (const Buffer& frame : {write_ready({false}), write_refuse("this end sent nonsense")}) {
    control.send(zmq::const_buffer(frame.data(), frame.size()));
    ASSERT_TRUE(play({&listener}, [&] { return !listener.diary.open.empty(); }));
  }
  ASSERT_TRUE(play({&listener}, [&] { return !listener.diary.ends.empty(); }));
  EXPECT_EQ(listener.diary.ends.begin()->second,
            "the other end refused the connection: this end sent nonsense");
}

}  // namespace
}  // namespace troupe::runtime
