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
    for (const SocketId id : {SocketId::kControl, SocketId::kData}) {
      router(id) = zmq::socket_t(context_, ZMQ_ROUTER);
      router(id).set(zmq::sockopt::linger, 0);
      router(id).bind(path_of(address_, id));
    }
    id_ = dialer_.dial(address_);
    EXPECT_EQ(said(SocketId::kControl), FrameKind::kAttach);
    EXPECT_EQ(said(SocketId::kData), FrameKind::kAttach);
    say(SocketId::kControl, write_welcome({}));
    EXPECT_EQ(said(SocketId::kControl), FrameKind::kReady);
    ASSERT_TRUE(play({&dialer_}, [&] { return !dialer_.diary.open.empty(); }));
  }
  zmq::socket_t& router(SocketId id) { return routers_[static_cast<std::size_t>(id)]; }
  // The kind of the dialer's next message.
  std::optional<FrameKind> said(SocketId id) {
    zmq::message_t route;
    EXPECT_TRUE(play(
        {&dialer_}, [&] { return router(id).recv(route, zmq::recv_flags::dontwait).has_value(); }));
    routes_[static_cast<std::size_t>(id)] = route.to_string();
    zmq::message_t frame;
    EXPECT_TRUE(router(id).recv(frame).has_value());
    last_ = Buffer::copy_of({frame.data<std::byte>(), frame.size()});
    return kind_of(last_.bytes());
  }
  void begin(SocketId id) {
    router(id).send(zmq::buffer(routes_[static_cast<std::size_t>(id)]), zmq::send_flags::sndmore);
  }
  void say(SocketId id, const Buffer& frame) {
    begin(id);
    router(id).send(zmq::const_buffer(frame.data(), frame.size()));
  }

  const std::string address_ = fresh_ipc_address();
  zmq::context_t context_;
  std::array<zmq::socket_t, kSockets> routers_;
  std::array<std::string, kSockets> routes_;
  ZmqWireOptions options_ = [] {
    ZmqWireOptions options;
    options.clock = &stage_clock();
    return options;
  }();
  StageEnd dialer_{options_};
  ConnectionId id_;
  Buffer last_;
};

TEST_F(BadListener, AMessageOfTooManyFramesEndsTheConnectionWithItsReasonAtBothEnds) {
  begin(SocketId::kData);
  for (int i = 0; i < 2000; ++i) {
    router(SocketId::kData)
        .send(zmq::const_buffer("x", 1),
              i + 1 < 2000 ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }
  ASSERT_TRUE(play({&dialer_}, [&] { return dialer_.diary.ends.contains(id_); }));
  EXPECT_EQ(dialer_.diary.ends[id_], "the other end sent a message of too many frames");
  EXPECT_EQ(said(SocketId::kControl), FrameKind::kRefuse);
  EXPECT_EQ(read_refuse(last_.bytes()), "this end sent a message of too many frames");
  EXPECT_EQ(dialer_.wire->counters().dropped, 1U);
}

TEST_F(BadListener, MayBeClosedAndDialedAgainAtOnce) {
  say(SocketId::kData, pattern(100, 1));
  ASSERT_TRUE(play({&dialer_}, [&] { return dialer_.diary.ends.contains(id_); }));
  dialer_.wire->close(id_);
  const ConnectionId again = dialer_.dial(address_);
  EXPECT_NE(again, id_);
  // What was said of the first one stands before it.
  auto kind = said(SocketId::kControl);
  while (kind == FrameKind::kRefuse || kind == FrameKind::kBye) kind = said(SocketId::kControl);
  EXPECT_EQ(kind, FrameKind::kAttach);
}

// The listener's side of it: what a dialer says instead of a goodbye.
TEST(ZmqAccusation, AListenerHearsWhatItIsToldAndEndsTheConnection) {
  ZmqWireOptions options;
  options.clock = &stage_clock();
  options.listen = fresh_ipc_address();
  StageEnd listener(options);
  zmq::context_t context;
  const Token token = random_token();
  const auto attached = [&](SocketId id) {
    zmq::socket_t socket(context, ZMQ_DEALER);
    socket.set(zmq::sockopt::linger, 0);
    const Route route{token, id};
    socket.set(zmq::sockopt::routing_id, route.text());
    socket.connect(path_of(options.listen, id));
    const Buffer frame = write_attach({route, {}});
    socket.send(zmq::const_buffer(frame.data(), frame.size()));
    return socket;
  };
  zmq::socket_t control = attached(SocketId::kControl);
  zmq::socket_t data = attached(SocketId::kData);
  zmq::message_t welcome;
  ASSERT_TRUE(play({&listener},
                   [&] { return control.recv(welcome, zmq::recv_flags::dontwait).has_value(); }));
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
