// A socket against a peer that speaks ZeroMQ's protocol by hand.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <thread>

#include "runtime/transport/zmq_socket.h"

namespace troupe::runtime {
namespace {

using std::chrono::milliseconds;

// A DEALER of ZMTP 3.0 called "ab", without encryption, that reads nothing but the greeting.
class PeerByHand {
 public:
  explicit PeerByHand(const std::string& endpoint) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
    CHECK(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0, "not connected");
    std::string greeting(64, '\0');
    greeting[0] = '\xFF';
    greeting[9] = '\x7F';
    greeting[10] = 3;
    greeting.replace(12, 4, "NULL");
    write(greeting);
    const std::string ready =
        "\x05READY" + property("Socket-Type", "DEALER") + property("Identity", "ab");
    write(std::string{'\x04', static_cast<char>(ready.size())} + ready);
    // The listener's greeting and its READY: what follows may be messages.
    std::string answer;
    while (answer.size() < 66 || answer.size() < 66U + static_cast<unsigned char>(answer[65])) {
      char byte = 0;
      CHECK(::recv(socket_, &byte, 1, 0) == 1, "no answer");
      answer.push_back(byte);
    }
  }
  ~PeerByHand() { reset(); }
  PeerByHand(const PeerByHand&) = delete;
  PeerByHand& operator=(const PeerByHand&) = delete;

  void say(const std::string& message) {
    write(std::string{'\0', static_cast<char>(message.size())} + message);
  }
  // As the death of a process with unread bytes does.
  void reset() {
    if (socket_ < 0) return;
    const linger at_once{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    ::close(socket_);
    socket_ = -1;
  }

 private:
  static std::string property(const std::string& name, const std::string& value) {
    return static_cast<char>(name.size()) + name + std::string(3, '\0') +
           static_cast<char>(value.size()) + value;
  }
  void write(const std::string& bytes) const {
    CHECK(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
              static_cast<ssize_t>(bytes.size()),
          "not sent");
  }

  int socket_;
};

// The library's heartbeats abort the process here, see zmq_socket.cpp.
TEST(ZmqSocket, AClosedSocketThatLingersOutlivesItsPeer) {
  auto context = std::move(*ZmqContext::open(1));
  ZmqSocketOptions options;
  options.most_frame_bytes = 1 << 20;
  options.linger = milliseconds(2500);
  auto socket = std::move(*ZmqSocket::open(*context, options));
  PeerByHand peer(*socket->bind("tcp://127.0.0.1:*"));
  peer.say("x");
  std::vector<Buffer> frames;
  while (!socket->receive(frames)) {
    for (ZmqEvent event; socket->next_event(event);) {
    }
    ZmqSocket* const sockets[] = {socket.get()};
    wait_for_any(sockets, {}, -1);
  }
  // More than the system takes for a peer that does not read.
  const Buffer large[] = {Buffer::zeroed(std::size_t{64} << 20)};
  ASSERT_TRUE(socket->send("ab", large));
  socket.reset();
  std::this_thread::sleep_for(milliseconds(100));
  peer.say("y");
  std::this_thread::sleep_for(milliseconds(100));
  peer.reset();
  context.reset();  // ends when the socket has lingered
}

}  // namespace
}  // namespace troupe::runtime
