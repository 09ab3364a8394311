// Peers that die, lie, or are not let in.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zmq.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/transport/resolve.h"
#include "runtime/transport/zmq_frames.h"
#include "runtime/transport/zmq_wire.h"
#include "tests/runtime/transport/wire_stage.h"

namespace troupe::runtime {
namespace {

using testing::HasSubstr;

ZmqWireOptions with_keys(const std::string& listen, const KeyPair& keys) {
  ZmqWireOptions options = plain(listen);
  options.keys = keys;
  return options;
}

// What is said when the wire does not open or does not dial; "" if it does.
std::string refusal_to_open(const ZmqWireOptions& options) {
  const auto opened = ZmqWire::open(options);
  if (opened.ok()) return "";
  EXPECT_EQ(opened.error().kind, ErrorKind::kUsage);
  return opened.error().message;
}

std::string refusal_to_dial(const ZmqWireOptions& options, const std::string& address) {
  const StageEnd end(options);
  const auto dialed = end.wire->dial(address);
  if (dialed.ok()) return "";
  EXPECT_EQ(dialed.error().kind, ErrorKind::kUsage);
  return dialed.error().message;
}

// A child process that runs one end until it is killed. Forked before this process has threads.
class ChildEnd {
 public:
  explicit ChildEnd(const std::function<void(StageEnd&)>& begin, const ZmqWireOptions& options) {
    process_ = ::fork();
    CHECK(process_ >= 0, "no process");
    if (process_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also if a CHECK ends this process
    StageEnd end(options);
    begin(end);
    for (;;) end.wire->poll(end.diary, TimePoint::max());
  }
  ~ChildEnd() { kill(); }
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_ = -1;
};

void expect_death_is_noticed(const std::string& address, bool child_dials) {
  ZmqWireOptions options = plain(child_dials ? "" : address);
  ChildEnd child(
      [&](StageEnd& end) {
        if (child_dials) end.dial(address);
      },
      options);
  options.listen = child_dials ? address : "";
  StageEnd here(options);
  if (!child_dials) here.dial(address);
  ASSERT_TRUE(play({&here}, [&] { return here.diary.open.size() == 1; }));
  child.kill();
  ASSERT_TRUE(play({&here}, [&] { return here.diary.ends.size() == 1; }));
  EXPECT_THAT(here.diary.ends.begin()->second, HasSubstr("lost"));
}

TEST(ZmqWireFailure, AListenerNoticesThatItsPeerWasKilled) {
  expect_death_is_noticed(fresh_ipc_address(), true);
}

TEST(ZmqWireFailure, ADialerNoticesThatItsPeerWasKilled) {
  expect_death_is_noticed(fresh_ipc_address(), false);
}

TEST(ZmqWireFailure, ADeadListenersPathCanBeTakenAgain) {
  const std::string address = fresh_ipc_address();
  expect_death_is_noticed(address, false);
  EXPECT_EQ(refusal_to_open(plain(address)), "");
}

// Three free ports below those that the system gives to outgoing connections.
std::string free_tcp_address() {
  const int first = 20'000 + ::getpid() % 1000 * 10;
  for (int port = first; port < first + 300; port += 3) {
    const std::string address = fmt::format("tcp://127.0.0.1:{}", port);
    if (ZmqWire::open(plain(address)).ok()) return address;
  }
  CHECK(false, fmt::format("no three free ports between {} and {}", first, first + 300));
}

TEST(ZmqWireFailure, APeerKilledOverTcpIsNoticedToo) {
  // The child needs a port that is known beforehand.
  const std::string address = free_tcp_address();
  expect_death_is_noticed(address, true);
  expect_death_is_noticed(address, false);
}

// Ends of a conversation that is refused: what the dialer is told.
std::string refusal(const ZmqWireOptions& listening, const ZmqWireOptions& dialing,
                    const std::string& key = "") {
  StageEnd listener(listening);
  StageEnd dialer(dialing);
  const ConnectionId id = dialer.dial(listener.wire->address() + key);
  EXPECT_TRUE(play({&listener, &dialer}, [&] { return !dialer.diary.ends.empty(); }));
  EXPECT_TRUE(dialer.diary.open.empty());
  EXPECT_TRUE(listener.diary.open.empty());
  return dialer.diary.ends[id];
}

TEST(ZmqWireFailure, AKeyThatIsNotOnTheListIsRefusedByName) {
  const KeyPair listener = *make_keys();
  const KeyPair dialer = *make_keys();
  ZmqWireOptions listening = with_keys("tcp://127.0.0.1:0", listener);
  listening.allowed = {{make_keys()->public_key, "another"}};
  std::vector<std::string> lines;
  LogOptions log;
  log.to_stderr = false;
  log.also = [&](LogLevel, std::string_view line) { lines.emplace_back(line); };
  listening.log = *Log::open(log);
  const std::string why = refusal(listening, with_keys("", dialer), "#" + listener.public_key);
  EXPECT_THAT(why, HasSubstr("does not know this node's key"));
  EXPECT_THAT(why, HasSubstr(dialer.public_key));
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(lines[0], HasSubstr(dialer.public_key));
}

TEST(ZmqWireFailure, ATokenThatIsNotGoodIsNotToBePutOnTheList) {
  const KeyPair listener = *make_keys();
  const KeyPair token = *make_keys();
  ZmqWireOptions listening = with_keys("tcp://127.0.0.1:0", listener);
  listening.allowed = {{make_keys()->public_key, "another"}};
  ZmqWireOptions dialing = with_keys("", token);
  dialing.token_from = "TROUPE_TOKEN";
  const std::string why = refusal(listening, dialing, "#" + listener.public_key);
  EXPECT_THAT(why, HasSubstr("does not take the token of TROUPE_TOKEN: it has expired"));
  EXPECT_THAT(why, HasSubstr("troupe token DIR"));
  EXPECT_THAT(why, testing::Not(HasSubstr(token.public_key)));
  EXPECT_THAT(why, testing::Not(HasSubstr("allow-list")));
}

TEST(ZmqWireFailure, AnAllowedKeyIsLetInWithTheKeyInTheAddress) {
  const KeyPair keys = *make_keys();
  const KeyPair dialer = *make_keys();
  ZmqWireOptions listening = with_keys("tcp://127.0.0.1:0", keys);
  listening.allowed = {{dialer.public_key, "dialer"}};
  StageEnd there(listening);
  StageEnd here(with_keys("", dialer));
  here.dial(there.wire->address() + "#" + keys.public_key);
  EXPECT_TRUE(play({&here, &there}, [&] { return !here.diary.open.empty(); }));
}

TEST(ZmqWireFailure, AMissingKeyIsToldApart) {
  EXPECT_THAT(refusal(with_keys(fresh_ipc_address(), *make_keys()), plain()),
              HasSubstr("takes encrypted connections only"));
}

TEST(ZmqWireFailure, AListenerWithoutKeysIsNotTrusted) {
  EXPECT_THAT(refusal(plain(fresh_ipc_address()), with_keys("", *make_keys()),
                      "#" + make_keys()->public_key),
              HasSubstr("does not encrypt"));
}

TEST(ZmqWireFailure, AWrongServerKeyIsNamedInTheEnd) {
  const KeyPair dialer = *make_keys();
  ZmqWireOptions listening = with_keys("tcp://127.0.0.1:0", *make_keys());
  listening.allowed = {{dialer.public_key, "dialer"}};
  const KeyPair other = *make_keys();
  const std::string why = refusal(listening, with_keys("", dialer), "#" + other.public_key);
  EXPECT_THAT(why, HasSubstr("another key than " + other.public_key));
}

TEST(ZmqWireFailure, NothingLeavesTheMachineWithoutKeys) {
  EXPECT_THAT(refusal_to_open(plain("tcp://0.0.0.0:0")), HasSubstr("troupe keygen"));
  EXPECT_THAT(refusal_to_open(plain("tcp://*:0")), HasSubstr("troupe keygen"));
  EXPECT_THAT(refusal_to_open(plain("tcp://[::]:0")), HasSubstr("troupe keygen"));
  EXPECT_THAT(refusal_to_dial(plain(), "tcp://192.0.2.1:7000"), HasSubstr("troupe keygen"));
  EXPECT_THAT(refusal_to_dial(plain(), "192.0.2.1:7000#" + make_keys()->public_key),
              HasSubstr("has no keys of its own"));
  EXPECT_EQ(refusal_to_open(with_keys("tcp://0.0.0.0:0", *make_keys())), "");
}

TEST(ZmqWireFailure, AddressesThatCannotBeMeantAreErrors) {
  EXPECT_THAT(refusal_to_dial(plain(), "tcp://no-such-host.invalid:7000"),
              HasSubstr("does not resolve"));
  EXPECT_THAT(refusal_to_dial(plain(), "127.0.0.1:0"), HasSubstr("names no port"));
  EXPECT_THAT(refusal_to_dial(plain(), "http://a:1"), HasSubstr("neither tcp nor ipc"));
  EXPECT_THAT(refusal_to_open(plain("tcp://127.0.0.1:65535")), HasSubstr("up to 65534"));
}

TEST(ZmqWireFailure, APortInUseIsNamed) {
  const StageEnd first(plain("tcp://127.0.0.1:0"));
  const std::string why = refusal_to_open(plain(first.wire->address()));
  EXPECT_THAT(why, HasSubstr(first.wire->address()));
  EXPECT_THAT(why, HasSubstr("ss -ltnp"));
}

TEST(ZmqWireFailure, APathInUseIsNamedAndStaysItsOwners) {
  const std::string address = fresh_ipc_address();
  StageEnd first(plain(address));
  EXPECT_THAT(refusal_to_open(plain(address)), HasSubstr("another process listens there"));
  StageEnd dialer(plain());
  dialer.dial(address);
  EXPECT_TRUE(play({&first, &dialer}, [&] { return !first.diary.open.empty(); }));
}

TEST(ZmqWireFailure, NothingStaysAtThePathOfAWireThatEnded) {
  const std::string address = fresh_ipc_address();
  const std::string control = address.substr(6), data = control + ".data";
  {
    const StageEnd end(plain(address));
    EXPECT_TRUE(std::filesystem::exists(control) && std::filesystem::exists(data));
  }
  EXPECT_FALSE(std::filesystem::exists(control) || std::filesystem::exists(data));
}

TEST(ZmqWireFailure, AFileAtThePathIsNotRemoved) {
  const std::string address = fresh_ipc_address();
  const std::string path = address.substr(6);
  std::ofstream(path) << "precious";
  EXPECT_THAT(refusal_to_open(plain(address)), HasSubstr("a file of that name"));
  struct stat facts {};
  EXPECT_EQ(::stat(path.c_str(), &facts), 0);
  ::unlink(path.c_str());
}

// An unknown peer that knows ZeroMQ, next to a peer that must not notice.
class UnknownPeer : public testing::Test {
 protected:
  void SetUp() override {
    good_.dial(address_);
    ASSERT_TRUE(play({&listener_, &good_},
                     [&] { return !listener_.diary.open.empty() && !good_.diary.open.empty(); }));
  }
  void TearDown() override {
    good_.wire->send(good_.diary.open[0], Lane::kData, packet_of(1, {100}));
    EXPECT_TRUE(play({&listener_, &good_}, [&] {
      return !listener_.diary.packets.empty() &&
             listener_.diary.packets.back().connection == listener_.diary.open[0];
    }));
    EXPECT_FALSE(listener_.diary.ends.contains(listener_.diary.open[0]));
  }
  zmq::socket_t dealer(const Route& route) {
    zmq::socket_t socket(context_, ZMQ_DEALER);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::routing_id, route.text());
    socket.connect(path_of(address_, route.socket));
    return socket;
  }
  static void send(zmq::socket_t& socket, std::initializer_list<Buffer> frames) {
    std::size_t left = frames.size();
    for (const Buffer& frame : frames) {
      socket.send(zmq::const_buffer(frame.data(), frame.size()),
                  --left > 0 ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
  }
  // The next message's first frame; the listener is played until it is there.
  Buffer answer(zmq::socket_t& socket) {
    zmq::message_t message;
    EXPECT_TRUE(play({&listener_},
                     [&] { return socket.recv(message, zmq::recv_flags::dontwait).has_value(); }));
    return Buffer::copy_of({message.data<std::byte>(), message.size()});
  }
  bool dropped(std::uint64_t count) {
    return play({&listener_},
                [&] { return listener_.wire->counters().dropped >= before_ + count; });
  }
  static void send_frames(zmq::socket_t& socket, int count) {
    for (int i = 0; i < count; ++i) {
      socket.send(zmq::const_buffer("x", 1),
                  i + 1 < count ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
  }
  // Its end of a connection that has come about.
  struct Acquaintance {
    zmq::socket_t control, data;
    ConnectionId id;
  };
  Acquaintance open_by_hand() {
    const Token token = random_token();
    const auto attached = [&](SocketId id) {
      zmq::socket_t socket = dealer({token, id});
      send(socket, {write_attach({{token, id}, {}})});
      return socket;
    };
    Acquaintance made;
    // In either order.
    made.data = attached(SocketId::kData);
    made.control = attached(SocketId::kControl);
    EXPECT_EQ(kind_of(answer(made.control).bytes()), FrameKind::kWelcome);
    send(made.control, {write_ready({false})});
    EXPECT_EQ(listener_.diary.open.size(), 2u);
    made.id = listener_.diary.open.back();
    return made;
  }

  const std::string address_ = fresh_ipc_address();
  StageEnd listener_{plain(address_)};
  StageEnd good_{plain()};
  zmq::context_t context_;
  std::uint64_t before_ = 0;
};

TEST_F(UnknownPeer, GarbageIsDroppedAndCounted) {
  zmq::socket_t nobody(context_, ZMQ_DEALER);
  nobody.set(zmq::sockopt::linger, 0);
  nobody.connect(address_);
  send(nobody, {pattern(100, 1)});
  send(nobody, {Buffer()});
  send(nobody, {pattern(5, 2), pattern(70000, 3)});
  zmq::socket_t named = dealer({random_token(), SocketId::kControl});
  send(named, {pattern(100, 1)});
  send(named, {write_ready({true})});
  send(named, {write_packet(Lane::kControl, {}, {})});
  EXPECT_TRUE(dropped(6));
}

TEST_F(UnknownPeer, TruncatedAttachesAreDropped) {
  const Token token = random_token();
  const Buffer whole = write_attach({{token, SocketId::kData}, {}});
  zmq::socket_t socket = dealer({token, SocketId::kData});
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) send(socket, {whole.slice(0, bytes)});
  EXPECT_TRUE(dropped(whole.size()));
  send(socket, {whole});
  zmq::socket_t control = dealer({token, SocketId::kControl});
  send(control, {write_attach({{token, SocketId::kControl}, {}})});
  EXPECT_EQ(kind_of(answer(control).bytes()), FrameKind::kWelcome);
}

TEST_F(UnknownPeer, AnAttachInAnothersNameIsDropped) {
  zmq::socket_t socket = dealer({random_token(), SocketId::kControl});
  send(socket, {write_attach({{random_token(), SocketId::kControl}, {}})});
  EXPECT_TRUE(dropped(1));
}

TEST_F(UnknownPeer, ASecondAttachWithATokenChangesNothing) {
  const Route route{random_token(), SocketId::kControl};
  zmq::socket_t socket = dealer(route);
  send(socket, {write_attach({route, {}})});
  send(socket, {write_attach({route, {}})});
  EXPECT_TRUE(dropped(1));
  zmq::socket_t twin = dealer(route);
  send(twin, {write_attach({route, {}})});
  send(socket, {pattern(10, 1)});
  EXPECT_TRUE(dropped(2));
  EXPECT_EQ(listener_.diary.open.size(), 1u);
}

TEST_F(UnknownPeer, AnotherVersionIsRefusedWithBothNumbers) {
  const Route route{random_token(), SocketId::kControl};
  Buffer attach = write_attach({route, {}});
  attach.mutable_data()[4] = std::byte{99};
  zmq::socket_t socket = dealer(route);
  send(socket, {attach});
  const Buffer refused = answer(socket);
  EXPECT_EQ(kind_of(refused.bytes()), FrameKind::kRefuse);
  EXPECT_THAT(
      read_refuse(refused.bytes()),
      HasSubstr(fmt::format("version {} of the protocol and this end 99", kProtocolVersion)));
}

TEST_F(UnknownPeer, APeerThatBreaksTheProtocolLosesItsConnection) {
  Acquaintance peer = open_by_hand();
  // Announces 16 GiB, which costs nothing, and then sends what does not belong there.
  const PayloadEntry huge{kMostPayloadBytes, PayloadEntry::How::kChunks, {}};
  send(peer.data, {write_packet(Lane::kData, {&huge, 1}, {})});
  send(peer.data, {write_bare(FrameKind::kChunk, Lane::kData), pattern(10, 1)});
  ASSERT_TRUE(play({&listener_}, [&] { return listener_.diary.ends.contains(peer.id); }));
  EXPECT_EQ(listener_.diary.ends[peer.id], "the other end sent a chunk of another size");
  EXPECT_EQ(kind_of(answer(peer.control).bytes()), FrameKind::kRefuse);
}

TEST_F(UnknownPeer, ThatAccusesThisEndIsHeardAndItsConnectionIsOver) {
  Acquaintance made = open_by_hand();
  send(made.control, {write_refuse("this end sent nonsense")});
  ASSERT_TRUE(play({&listener_}, [&] { return listener_.diary.ends.contains(made.id); }));
  EXPECT_EQ(listener_.diary.ends[made.id],
            "the other end refused the connection: this end sent nonsense");
}

TEST_F(UnknownPeer, AMessageOfTooManyFramesEndsTheConnectionWithItsReason) {
  Acquaintance peer = open_by_hand();
  send_frames(peer.data, 2000);
  ASSERT_TRUE(play({&listener_}, [&] { return listener_.diary.ends.contains(peer.id); }));
  EXPECT_EQ(listener_.diary.ends[peer.id], "the other end sent a message of too many frames");
  EXPECT_THAT(read_refuse(answer(peer.control).bytes()), HasSubstr("a message of too many frames"));
}

TEST_F(UnknownPeer, AMessageOfTooManyFramesBeforeTheConnectionIsOpenIsDropped) {
  const Route route{random_token(), SocketId::kControl};
  zmq::socket_t socket = dealer(route);
  send_frames(socket, 2000);
  send(socket, {write_attach({route, {}})});
  send_frames(socket, 2000);
  EXPECT_TRUE(dropped(2));
}

TEST(ZmqWireFailure, AListenerOfAnotherVersionEndsTheDial) {
  zmq::context_t context;
  zmq::socket_t router(context, ZMQ_ROUTER);
  router.set(zmq::sockopt::linger, 0);
  zmq::socket_t data(context, ZMQ_ROUTER);
  data.set(zmq::sockopt::linger, 0);
  const std::string address = fresh_ipc_address();
  router.bind(address);
  data.bind(path_of(address, SocketId::kData));
  StageEnd dialer(plain());
  const ConnectionId id = dialer.dial(address);
  zmq::message_t route;
  ASSERT_TRUE(
      play({&dialer}, [&] { return router.recv(route, zmq::recv_flags::dontwait).has_value(); }));
  router.send(route, zmq::send_flags::sndmore);
  Buffer refused = write_refuse("whatever");
  refused.mutable_data()[4] = std::byte{77};
  router.send(zmq::const_buffer(refused.data(), refused.size()));
  ASSERT_TRUE(play({&dialer}, [&] { return dialer.diary.ends.contains(id); }));
  EXPECT_THAT(dialer.diary.ends[id],
              HasSubstr(fmt::format("speaks version 77 of the protocol and this end {}",
                                    kProtocolVersion)));
  EXPECT_EQ(dialer.diary.kinds[id], ErrorKind::kUsage);
}

TEST(ZmqWireFailure, BytesThatAreNotZeroMqDoNoHarm) {
  StageEnd listener(plain("tcp://127.0.0.1:0"));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(parse_address(listener.wire->address())->port);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const int raw = ::socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(::connect(raw, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    Buffer bytes = pattern(10'000, i);
    // Half of them begin as a greeting does.
    if (i % 2 == 0) {
      bytes.mutable_data()[0] = std::byte{0xFF};
      bytes.mutable_data()[9] = std::byte{0x7F};
    }
    EXPECT_GT(::send(raw, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    ::close(raw);
  }
  StageEnd dialer(plain());
  dialer.dial(listener.wire->address());
  EXPECT_TRUE(play({&listener, &dialer}, [&] { return !listener.diary.open.empty(); }));
}

}  // namespace
}  // namespace troupe::runtime
