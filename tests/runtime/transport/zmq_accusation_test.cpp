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
  StageEnd dialer_{plain()};
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

}  // namespace
}  // namespace troupe::runtime
