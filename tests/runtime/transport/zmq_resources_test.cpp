// What a wire does when the system has no more descriptors, and when nobody answers.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <zmq.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/transport/zmq_frames.h"
#include "runtime/transport/zmq_wire.h"
#include "tests/runtime/transport/wire_stage.h"
#include "tests/support/process_limits.h"

namespace troupe::runtime {
namespace {

using testing::HasSubstr;

// Tests that leave the process without descriptors.
class ZmqDescriptors : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the sanitizer itself needs a descriptor to look at an object's type";
#endif
  }
};

void expect_told(const Error& error) {
  EXPECT_EQ(error.kind, ErrorKind::kUsage);
  EXPECT_THAT(error.message, HasSubstr("file descriptors"));
  EXPECT_THAT(error.message, HasSubstr("ulimit -n"));
}

TEST_F(ZmqDescriptors, AWireThatFindsNoDescriptorsIsAnError) {
  // From none at all to some that are enough for a part of it.
  for (int more = 0; more < 20; ++more) {
    SCOPED_TRACE(more);
    const FewDescriptors few(more);
    const auto opened = ZmqWire::open(plain(fresh_ipc_address()));
    if (opened.ok()) break;
    expect_told(opened.error());
  }
}

TEST_F(ZmqDescriptors, ADialThatFindsNoDescriptorsIsAnErrorAndLaterOnesWork) {
  StageEnd listener(plain(fresh_ipc_address()));
  StageEnd dialer(plain());
  dialer.dial(listener.wire->address());  // so that the threads are there
  ASSERT_TRUE(play({&listener, &dialer}, [&] { return dialer.diary.open.size() == 1; }));
  {
    const FewDescriptors few(0);
    const auto dialed = dialer.wire->dial(listener.wire->address());
    ASSERT_FALSE(dialed.ok());
    expect_told(dialed.error());
  }
  dialer.dial(listener.wire->address());
  EXPECT_TRUE(play({&listener, &dialer}, [&] { return dialer.diary.open.size() == 2; }));
  EXPECT_TRUE(dialer.diary.ends.empty());
}

// The first attempt finds nobody, and the next one no descriptors.
TEST_F(ZmqDescriptors, RunningOutWhileAConnectionIsMadeEndsItWithTheReason) {
  StageEnd dialer(plain());
  const ConnectionId id = dialer.dial(fresh_ipc_address());
  const auto has_ended = [&] { return dialer.diary.ends.contains(id); };
  // A connection that is being made at the moment of the limit leaves its descriptor behind, and
  // nothing runs out: then there is another limit.
  for (int i = 0; i < 20 && !has_ended(); ++i) {
    const FewDescriptors few(0);
    const TimePoint until = stage_clock().now() + std::chrono::seconds(2);
    play({&dialer}, [&] { return has_ended() || stage_clock().now() > until; });
  }
  ASSERT_TRUE(has_ended());
  expect_told({dialer.diary.kinds[id], dialer.diary.ends[id]});
}

// Takes connections, as the system does for a process that is stopped, and never says a word.
class Stopped {
 public:
  Stopped() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof(at);
    CHECK(::bind(socket_, reinterpret_cast<sockaddr*>(&at), bytes) == 0, "no port");
    CHECK(::listen(socket_, 100) == 0, "cannot listen");
    CHECK(::getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &bytes) == 0, "no name");
    address_ = fmt::format("tcp://127.0.0.1:{}", ntohs(at.sin_port));
  }
  ~Stopped() {
    for (const int taken : taken_) ::close(taken);
    ::close(socket_);
  }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;

  const std::string& address() const { return address_; }
  // Connections so far.
  std::size_t count() {
    for (int taken = 0; (taken = ::accept(socket_, nullptr, nullptr)) >= 0;) {
      taken_.push_back(taken);
    }
    return taken_.size();
  }
  void hang_up() {
    for (const int taken : std::exchange(taken_, {})) ::close(taken);
  }

 private:
  int socket_;
  std::string address_;
  std::vector<int> taken_;
};

TEST(ZmqResources, AListenerThatDoesNotAnswerInTimeHasRefusedNobody) {
  Stopped listener;
  ZmqWireOptions options = plain();
  options.attach_within = std::chrono::milliseconds(100);
  StageEnd dialer(options);
  dialer.dial(listener.address());
  // More often than handshakes may be broken off.
  EXPECT_TRUE(play({&dialer}, [&] { return listener.count() >= 8 || !dialer.diary.ends.empty(); }));
  EXPECT_TRUE(dialer.diary.ends.empty()) << dialer.diary.ends.begin()->second;
}

// Each time counts, though nobody listens at the port for data: that may be told first.
TEST(ZmqResources, AListenerThatHangsUpAgainAndAgainHasRefused) {
  Stopped listener;
  StageEnd dialer(plain());
  const ConnectionId id = dialer.dial(listener.address());
  std::size_t hung_up = 0;
  ASSERT_TRUE(play({&dialer}, [&] {
    hung_up += listener.count();
    listener.hang_up();
    return dialer.diary.ends.contains(id);
  }));
  EXPECT_EQ(hung_up, 5u);
  EXPECT_THAT(dialer.diary.ends[id], HasSubstr("hangs up during the handshake"));
}

}  // namespace
}  // namespace troupe::runtime
