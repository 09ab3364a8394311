#include "telemetry/sinks/publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <fstream>
#include <optional>
#include <thread>

#include <sys/stat.h>
#include <zmq.h>

#include "tests/support/process_limits.h"
#include "tests/support/temporary_folder.h"

namespace troupe::telemetry {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

// Who listens to a publisher, with room for so many messages.
class Subscriber {
 public:
  explicit Subscriber(const std::string& address, const std::string& topic = "", int room = 1000) {
    const int no_linger = 0;
    ::zmq_setsockopt(socket_, ZMQ_LINGER, &no_linger, sizeof no_linger);
    ::zmq_setsockopt(socket_, ZMQ_RCVHWM, &room, sizeof room);
    const int small = 4096;
    if (room < 1000) ::zmq_setsockopt(socket_, ZMQ_RCVBUF, &small, sizeof small);
    const int six = address.starts_with("tcp://[") ? 1 : 0;
    ::zmq_setsockopt(socket_, ZMQ_IPV6, &six, sizeof six);
    ::zmq_setsockopt(socket_, ZMQ_SUBSCRIBE, topic.data(), topic.size());
    EXPECT_EQ(::zmq_connect(socket_, address.c_str()), 0);
  }
  ~Subscriber() {
    ::zmq_close(socket_);
    ::zmq_ctx_term(context_);
  }
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  // Frames of the next message; nothing when none comes in time.
  std::optional<std::vector<std::string>> next(int milliseconds) {
    ::zmq_setsockopt(socket_, ZMQ_RCVTIMEO, &milliseconds, sizeof milliseconds);
    std::vector<std::string> frames;
    int more = 1;
    while (more != 0) {
      std::array<char, 65536> bytes;
      const int size = ::zmq_recv(socket_, bytes.data(), bytes.size(), 0);
      if (size < 0) return std::nullopt;
      frames.emplace_back(bytes.data(), static_cast<std::size_t>(size));
      std::size_t length = sizeof more;
      ::zmq_getsockopt(socket_, ZMQ_RCVMORE, &more, &length);
    }
    return frames;
  }

 private:
  void* context_ = ::zmq_ctx_new();
  void* socket_ = ::zmq_socket(context_, ZMQ_SUB);
};

std::unique_ptr<Publisher> publish_at(const std::string& address, int waiting = 1000) {
  auto publisher = Publisher::open({.address = address, .waiting = waiting});
  EXPECT_TRUE(publisher.ok()) << publisher.error().message;
  return publisher.ok() ? *std::move(publisher) : nullptr;
}

// The publisher learns of a subscriber after a while, and tells nobody. What was sent to find out
// is read away.
void wait_for(Publisher& publisher, Subscriber& subscriber, const std::string& topic) {
  for (int i = 0; i < 1000; ++i) {
    publisher.send(topic, "are you there?");
    if (subscriber.next(10)) break;
  }
  static int calls = 0;
  const std::string last = "last of " + std::to_string(++calls);
  publisher.send(topic, last);
  auto message = subscriber.next(10'000);
  while (message && message->back() != last) message = subscriber.next(10'000);
  EXPECT_TRUE(message) << "no subscriber";
}

std::string refusal(const std::string& address) {
  const auto publisher = Publisher::open({.address = address});
  EXPECT_FALSE(publisher.ok()) << address;
  if (publisher.ok()) return "";
  EXPECT_EQ(publisher.error().kind, runtime::ErrorKind::kUsage) << address;
  EXPECT_THAT(publisher.error().message, StartsWith("cannot publish at " + address + ": "));
  return publisher.error().message;
}

TEST(Publisher, SubscribersGetTwoFramesOfTheKindsTheyWant) {
  TemporaryFolder folder;
  for (const std::string& address :
       {std::string("tcp://127.0.0.1:*"), std::string("tcp://localhost:0"),
        "ipc://" + folder / "stream"}) {
    const auto publisher = publish_at(address);
    ASSERT_NE(publisher, nullptr);
    EXPECT_THAT(publisher->address(), AnyOf(StartsWith("tcp://127.0.0.1:"), address));
    Subscriber steps(publisher->address(), "step"), all(publisher->address());
    wait_for(*publisher, steps, "step");
    wait_for(*publisher, all, "node");
    publisher->send("node", "{1}");
    publisher->send("step", "{2}");
    EXPECT_EQ(all.next(10'000), (std::vector<std::string>{"node", "{1}"}));
    EXPECT_EQ(all.next(10'000), (std::vector<std::string>{"step", "{2}"}));
    EXPECT_EQ(steps.next(10'000), (std::vector<std::string>{"step", "{2}"}));
  }
}

TEST(Publisher, SubscriberThatStandsStillLosesAndHoldsUpNobody) {
  const auto publisher = publish_at("tcp://127.0.0.1:*");
  ASSERT_NE(publisher, nullptr);
  Subscriber still(publisher->address(), "", 1), quick(publisher->address());
  wait_for(*publisher, still, "step");
  wait_for(*publisher, quick, "step");
  const std::string body(10'000, 'x');
  constexpr int kMessages = 3000;  // 30 MB: no buffer of the system holds them
  int got = 0;
  for (int i = 0; i < kMessages; ++i) {
    publisher->send("step", body);
    if (quick.next(1'000)) ++got;
    if (got <= i) break;
  }
  EXPECT_EQ(got, kMessages);
}

TEST(Publisher, NobodyNeedListen) {
  const auto publisher = publish_at("tcp://127.0.0.1:*", 1);
  ASSERT_NE(publisher, nullptr);
  for (int i = 0; i < 10'000; ++i) publisher->send("step", "{}");
}

TEST(Publisher, AddressThatOthersCanReachIsRefusedWithATunnelInstead) {
  for (const char* host : {"*", "0.0.0.0", "192.168.1.2", "[::]", "eth0", "example.org",
                           "127.0.0.1.example.org", "localhost.example.org"}) {
    EXPECT_THAT(refusal("tcp://" + std::string(host) + ":8500"),
                HasSubstr("ssh -L 8500:127.0.0.1:8500"))
        << host;
  }
}

TEST(Publisher, AddressThatIsNoneIsRefusedWithOneThatIs) {
  for (const char* address :
       {"", "127.0.0.1:8500", "tcp://127.0.0.1", "tcp://127.0.0.1:port", "udp://127.0.0.1:1",
        "ipc://", "ipc://@abstract", "inproc://x", "tcp://127.0.0.1:8500/", "tcp://127.0.0.1:65536",
        "tcp://127.0.0.1:8500 "})
    EXPECT_THAT(refusal(address), HasSubstr("tcp://127.0.0.1:PORT or ipc://PATH")) << address;
  EXPECT_THAT(refusal("tcp://127.0.0.999:8500"), HasSubstr("only this machine is served"));
}

TEST(Publisher, AddressOfAnyLengthIsNoDanger) {
  for (const char* beginning : {"tcp://", "ipc:///"}) {
    const auto publisher = Publisher::open({.address = beginning + std::string(1 << 20, 'x')});
    ASSERT_FALSE(publisher.ok());
    EXPECT_THAT(publisher.error().message, HasSubstr("too long"));
  }
}

TEST(Publisher, PlaceThatIsTakenIsRefused) {
  TemporaryFolder folder;
  const auto tcp = publish_at("tcp://127.0.0.1:*");
  EXPECT_THAT(refusal(tcp->address()), HasSubstr("choose another port"));
  const std::string path = folder / "stream";
  {
    const auto ipc = publish_at("ipc://" + path);
    EXPECT_THAT(refusal("ipc://" + path), HasSubstr("another process listens there"));
    Subscriber subscriber("ipc://" + path);
    wait_for(*ipc, subscriber, "step");
    ipc->send("step", "{}");
    EXPECT_TRUE(subscriber.next(10'000)) << "the refused one took the place";
  }
  EXPECT_THAT(folder.names(), testing::IsEmpty());
  EXPECT_NE(publish_at("ipc://" + path), nullptr);
}

TEST(Publisher, PathIsOpenToItsOwnerAlone) {
  TemporaryFolder folder;
  const std::string path = folder / "stream";
  const mode_t before = ::umask(0);
  const auto publisher = publish_at("ipc://" + path);
  ::umask(before);
  struct stat status = {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST(Publisher, FileThatHasTheNameStaysWhatItWas) {
  TemporaryFolder folder;
  const std::string path = folder / "results";
  std::ofstream(path) << "a year's work";
  EXPECT_THAT(refusal("ipc://" + path), HasSubstr("a file of that name exists"));
  EXPECT_EQ(read_text(path), "a year's work");
  EXPECT_THAT(refusal("ipc:///nowhere/at/all"), HasSubstr("No such file or directory"));
  EXPECT_THAT(refusal("ipc:///" + std::string(200, 'x')), HasSubstr("the system allows 107"));
}

// The library would end the process.
TEST(Publisher, ProcessWithoutDescriptorsIsToldSo) {
  const FewDescriptors few(8);
  const auto publisher = Publisher::open({.address = "tcp://127.0.0.1:*"});
  ASSERT_FALSE(publisher.ok());
  EXPECT_THAT(publisher.error().message, HasSubstr("ulimit -n"));
}

}  // namespace
}  // namespace troupe::telemetry
