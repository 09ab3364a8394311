#include "tests/telemetry/page/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "runtime/base/error.h"

namespace troupe::telemetry {

RawClient::RawClient(std::uint16_t port, int receive_bytes)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  CHECK(socket_ >= 0, "no socket");
  if (receive_bytes > 0) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
  }
  // So that a server that hangs fails the test.
  const timeval patience{60, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0, "no server");
}

RawClient::~RawClient() {
  if (socket_ >= 0) ::close(socket_);
}

RawClient::RawClient(RawClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), heard_(std::move(other.heard_)) {}

bool RawClient::say(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t taken = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (taken <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(taken));
  }
  return true;
}

bool RawClient::receive() {
  std::array<char, 65536> bytes;
  const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), 0);
  CHECK(count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK), "the server says nothing");
  if (count <= 0) return false;
  heard_.append(bytes.data(), static_cast<std::size_t>(count));
  return true;
}

std::string RawClient::rest() {
  while (receive()) {
  }
  return heard_;
}

const std::string& RawClient::hear(std::string_view part) {
  while (heard_.find(part) == std::string::npos && receive()) {
  }
  return heard_;
}

void RawClient::finish() { ::shutdown(socket_, SHUT_WR); }

std::string get(std::uint16_t port, const std::string& path, const std::string& fields) {
  RawClient client(port);
  client.say("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + fields +
             "\r\n");
  return client.rest();
}

std::string post(std::uint16_t port, const std::string& path, const std::string& body,
                 const std::string& fields) {
  RawClient client(port);
  client.say("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + fields +
             "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  return client.rest();
}

std::string body_of(const std::string& answer) {
  const std::size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

int status_of(const std::string& answer) {
  return answer.starts_with("HTTP/1.1 ") ? std::atoi(answer.c_str() + 9) : 0;
}

}  // namespace troupe::telemetry
