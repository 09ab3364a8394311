#pragma once

// The connections of a relay and its clients: a line, over which they say what they want, and then
// two connections of which each is given what comes from the other. For relay.cpp and
// relay_client.cpp alone, which drive them from one thread.

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/relay/relay_frames.h"

namespace troupe::runtime {

// A socket of TCP, or of the file system.
using StreamSocket = boost::asio::generic::stream_protocol::socket;

// The relay's place; `host` is a number, IPv6 with or without brackets.
boost::asio::ip::tcp::endpoint relay_endpoint(std::string_view host, std::uint16_t port,
                                              boost::system::error_code& failed);

// Makes the socket send without delay and notice within a minute an end that is silently gone. Does
// nothing to a socket that is not TCP.
void prepare_for_relay(StreamSocket& socket);

// A connection over which frames come and go. Each handler that waits on it owns a share of it.
struct Line : std::enable_shared_from_this<Line> {
  explicit Line(StreamSocket connection)
      : socket(std::move(connection)), deadline(socket.get_executor()) {}

  // Handlers that wait on it hear that it failed.
  void close();
  // Closes it then, unless the deadline is moved or cancelled before.
  void close_after(Duration time);

  StreamSocket socket;
  RelayFrameBytes frame{};
  boost::asio::steady_timer deadline;
};
using LinePointer = std::shared_ptr<Line>;

// Lives as long as bytes may come: its own handlers own it. No more than a buffer for each
// direction waits in it; the rest waits at its sender.
class Splice : public std::enable_shared_from_this<Splice> {
 public:
  // `kept` is held as long as the splice lives.
  Splice(StreamSocket one, StreamSocket other, std::shared_ptr<void> kept = nullptr);
  void begin();

 private:
  void read(std::size_t from);
  void write(std::size_t from, std::size_t bytes);
  void end_of(std::size_t from);
  void close();

  std::array<StreamSocket, 2> sockets_;
  std::array<std::vector<std::byte>, 2> buffers_;
  int ended_ = 0;
  boost::asio::steady_timer last_words_;
  const std::shared_ptr<void> kept_;
};

}  // namespace troupe::runtime
